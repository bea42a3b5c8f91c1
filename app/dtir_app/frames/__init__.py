"""Pure functions: program and selection in, plain columns out; nothing here knows how it is drawn."""
