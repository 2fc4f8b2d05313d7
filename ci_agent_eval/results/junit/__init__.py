"""JUnit XML files of any producer, read as loaded results."""
