"""Greets somebody in one of a few languages."""

GREETINGS = {"en": "Hello", "de": "Guten Tag", "es": "Hola", "fi": "Hei", "fr": "Bonjour"}


def hello(request):
    language = request.get("language", "en")
    return {"greeting": f"{GREETINGS[language]}, {request['name']}", "language": language}
