"""``panel serve app/main.py``: the explorer with its gallery, for people who run a Panel server anyway."""

from dtir_app.main import app

app().servable()
