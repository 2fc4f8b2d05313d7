"""The program: the command line, the action, and the order of the whole job."""
