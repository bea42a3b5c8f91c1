"""The version of the package, in one place: the build reads it and `dtir --version` prints it."""

__version__ = "0.1.0"
