"""Importer of HLO text: `import_hlo` gives a program, `analyse_text` the module as read."""
