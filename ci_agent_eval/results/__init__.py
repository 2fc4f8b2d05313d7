"""Reading result files: episodes, JUnit XML, other tools' formats, baselines."""
