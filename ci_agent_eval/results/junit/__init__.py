"""Read JUnit XML files of any producer."""
