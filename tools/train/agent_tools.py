"""Tools, values and requests for the synthetic dialogues of agent_data.py.

A value, a tool name or a word belongs to the held-out tenth when its CRC-32 is divisible by ten: a generator
made with held=False never puts such a value into an argument, a file name, a fact or a tool's name, and one
made with held=True uses nothing else. HELD_FAMILIES are written by hand for measuring alone.
"""
import json, random, re, zlib
from collections import Counter

CITIES = """London Paris Berlin Madrid Rome Vienna Oslo Stockholm Helsinki Copenhagen Dublin Lisbon Prague Warsaw Budapest Athens
Istanbul Cairo Nairobi Lagos Accra Tunis Dakar Delhi Mumbai Chennai Dhaka Bangkok Hanoi Jakarta Manila Tokyo Osaka Kyoto Seoul
Beijing Shanghai Sydney Melbourne Perth Auckland Toronto Montreal Vancouver Boston Chicago Denver Dallas Houston Seattle Portland
Miami Atlanta Phoenix Lima Quito Bogota Santiago Havana Zurich Geneva Munich Hamburg Cologne Bremen Leipzig Dresden Lyon Nice
Marseille Bordeaux Milan Turin Naples Venice Florence Porto Seville Valencia Bergen Malmo Tampere Riga Vilnius Tallinn Krakow
Gdansk Brno Graz Salzburg Zagreb Belgrade Sofia Bucharest Kyiv Ankara Izmir Beirut Amman Muscat Doha Tashkent Kabul Lahore Karachi
Colombo Kathmandu Hobart Darwin Wellington Suva Quebec Ottawa Calgary Winnipeg Tucson Omaha Memphis Detroit Cleveland""".split()
COND = "sunny,cloudy,rainy,windy,foggy,clear,snowy,stormy,overcast,hazy,humid,dry,mild,freezing".split(",")
LANGS = "English,German,French,Spanish,Italian,Dutch,Swedish,Polish,Turkish,Hindi,Arabic,Korean,Japanese,Greek,Finnish,Danish".split(",")
CURR = "USD,EUR,GBP,JPY,CHF,SEK,NOK,DKK,PLN,CZK,INR,CNY,KRW,BRL,CAD,AUD,NZD,MXN".split(",")
UNITS = "km,miles,meters,feet,inches,cm,kg,pounds,grams,ounces,liters,gallons,cups,celsius,fahrenheit,kelvin,hours,minutes,seconds,days,bytes,kilobytes,acres,hectares,knots,yards".split(",")
MONTHS = "January February March April May June July August September October November December".split()
COLORS = "red,green,blue,black,white,yellow,purple,orange,brown,grey,pink,silver,gold,teal".split(",")
EXTS = "txt,md,json,py,csv,yaml,toml,log,html,js,cc,h,sh,ini,xml,go,rs,css,sql,conf".split(",")
VERBS = """get fetch find create add update delete remove send list open close start stop book cancel check set move copy share
archive schedule assign approve reject export import rename merge track order publish load save print lock unlock enable
disable review rate tag pin mute invite register verify reset refresh sync download upload resize convert describe count""".split()
NOUNS = """order invoice ticket customer account user project task issue report document message meeting event booking
reservation flight hotel room package parcel shipment product item cart payment refund coupon contract ticket_note comment
playlist song album movie book recipe ingredient restaurant table menu garden plant sensor lamp thermostat camera door alarm
robot drone vehicle trip route station bus train ferry ship cabin farm field crop animal pet patient doctor appointment
prescription lesson course student teacher exam grade library shelf museum ticket_price exhibit team player match score
league server database backup container cluster deployment branch commit pull_request repository build pipeline test_run
bug release license certificate key secret queue job worker metric dashboard alert log_entry incident channel thread post
photo video file folder note bookmark reminder calendar contact profile address subscription plan budget expense loan
card transfer stock bond fund warehouse supplier tool part machine engine battery printer device network router domain
mailbox template form survey vote poll badge award gift voucher lottery permit visa passport locker""".split()
FIELD = """status owner price color size weight priority category state stage level region location address phone email
balance rating capacity quantity duration deadline version title author language department manager amount total count
code type mode label score speed temperature height width length age brand model serial_number created_by due_date""".split()


def held_out(value):
    return zlib.crc32(str(value).encode()) % 10 == 0


class Lexicon:
    """Words, first names and paragraphs from the books."""

    def __init__(self, text, paragraphs):
        low, cap = Counter(re.findall(r"(?<=[a-z,] )[a-z]{4,9}\b", text)), Counter(re.findall(r"(?<=[a-z] )[A-Z][a-z]{2,8}\b", text))
        self.words = [w for w, n in low.most_common(9000)][250:]
        lower = Counter(re.findall(r"\b[a-z]{3,9}\b", text))
        self.names = [w for w, n in cap.most_common(2500) if lower[w.lower()] < n / 4][:1200]
        self.paragraphs = paragraphs


class Gen:
    """Random values, all training or all held out."""

    def __init__(self, lex, seed, held=False):
        self.lex, self.r, self.held, self.declared = lex, random.Random(seed), held, ()

    def ok(self, make):
        for _ in range(200):
            v = make()
            if held_out(v) == self.held: return v
        return v

    def pick(self, xs): return xs[int(self.r.random() * len(xs))]
    def chance(self, p): return self.r.random() < p
    def int(self, a, b): return self.r.randint(a, b)
    def word(self): return self.ok(lambda: self.pick(self.lex.words))
    def name(self): return self.ok(lambda: self.pick(self.lex.names))
    def full(self): return self.name() + " " + self.name()
    def city(self): return self.ok(lambda: self.pick(CITIES))
    def words(self, a=2, b=4): return " ".join(self.word() for _ in range(self.int(a, b)))
    def number(self): return self.ok(lambda: self.pick([self.int(1, 30), self.int(1, 100), self.int(10, 999), self.int(100, 99999)]))
    def money(self): return self.ok(lambda: round(self.pick([self.r.uniform(1, 100), self.r.uniform(10, 5000)]), self.pick([0, 1, 2, 2])) or 1.5)
    def decimal(self): return self.ok(lambda: self.pick([self.int(1, 500), round(self.r.uniform(0.1, 300), self.pick([1, 2]))]))
    def date(self): return self.ok(lambda: f"20{self.int(18, 32)}-{self.int(1, 12):02d}-{self.int(1, 28):02d}")
    def time(self): return self.ok(lambda: f"{self.int(0, 23):02d}:{self.pick([0, 15, 30, 45, self.int(0, 59)]):02d}")
    def email(self): return self.ok(lambda: f"{self.name().lower()}{self.pick(['', '.' + self.word(), str(self.int(1, 99))])}@{self.word()}.{self.pick(['com', 'org', 'net', 'io', 'example'])}")
    def url(self): return self.ok(lambda: f"https://{self.word()}.{self.pick(['com', 'org', 'io', 'net', 'dev'])}/{self.pick(['', self.word(), self.word() + '/' + self.word()])}")
    def phone(self): return self.ok(lambda: f"+{self.int(1, 99)} {self.int(100, 999)} {self.int(10000, 9999999)}")

    def code(self):
        L = "ABCDEFGHJKLMNPQRSTUVWXYZ"
        def make():
            k = self.int(0, 6)
            if k == 0: return f"{''.join(self.pick(L) for _ in range(self.int(2, 4)))}-{self.int(100, 99999)}"
            if k == 1: return "".join(self.pick("0123456789abcdef") for _ in range(self.int(6, 10)))
            if k == 2: return str(self.int(1000, 9999999))
            if k == 3: return f"{self.word()}_{self.int(1, 999)}"
            if k == 4: return "".join(self.pick(L + "0123456789") for _ in range(self.int(5, 9)))
            if k == 5: return f"{self.word()}-{self.word()}-{self.int(1, 99)}"
            return f"#{self.int(100, 99999)}" if self.chance(.5) else f"{self.pick(L)}{self.int(10, 9999)}"
        return self.ok(make)

    def stem(self):
        return self.pick([self.word(), self.word(), f"{self.word()}_{self.word()}", f"{self.word()}-{self.word()}", f"{self.word()}{self.int(1, 30)}", self.name()])
    def filename(self): return self.ok(lambda: f"{self.stem()}.{self.pick(EXTS)}")
    def dirname(self): return self.ok(lambda: "/".join(self.word() for _ in range(self.int(1, 3))))
    def path(self):
        return self.ok(lambda: self.pick(["", "", "/", "./", "/home/" + self.name().lower() + "/", "/var/", "/tmp/", "src/", "docs/"]) +
                       "".join(self.word() + "/" for _ in range(self.pick([0, 0, 1, 1, 2]))) + self.filename())

    def paragraph(self, least=60, most=700):
        for _ in range(30):
            p = self.pick(self.lex.paragraphs)
            if least <= len(p) <= most: return p
        return p[:most]

    def sentence(self):
        for _ in range(20):
            s = re.split(r"(?<=[.!?]) +", self.paragraph(40, 600))
            s = self.pick(s).strip().strip('"')
            if 15 < len(s) < 140 and '"' not in s and "\n" not in s: return s
        return "The " + self.words(3, 6) + "."

    def expression(self):
        def make():
            n = lambda: self.pick([self.int(2, 99), self.int(2, 999), round(self.r.uniform(1, 99), 1)])
            k, ops = self.int(0, 5), "+-*/"
            if k < 3: return f"{n()} {self.pick(ops)} {n()}"
            if k == 3: return f"{n()} {self.pick(ops)} {n()} {self.pick(ops)} {n()}"
            return f"({n()} {self.pick('+-')} {n()}) {self.pick('*/')} {n()}"
        return self.ok(make)

    def value(self, kind):
        if kind.startswith("enum:"): return self.pick(kind[5:].split(","))
        if kind == "bool": return self.chance(.5)
        if kind == "list": return [self.word() for _ in range(self.int(1, 4))]
        if kind == "numbers": return [self.number() for _ in range(self.int(2, 5))]
        if kind == "lang": return self.pick(LANGS)
        if kind == "curr": return self.pick(CURR)
        if kind == "unit": return self.pick(UNITS)
        if kind == "color": return self.pick(COLORS)
        return getattr(self, kind)()


TYPES = {"number": "integer", "money": "number", "decimal": "number", "bool": "boolean", "list": "array", "numbers": "array"}


def said(v):
    """A value as a person writes it in a sentence."""
    if isinstance(v, bool): return "true" if v else "false"
    if isinstance(v, list):
        v = [str(x) for x in v]
        return v[0] if len(v) == 1 else ", ".join(v[:-1]) + " and " + v[-1]
    return str(v)


def quoted(g, v):
    s = said(v)
    if isinstance(v, str) and g.chance(.25): return g.pick(['"{}"', "'{}'", "`{}`"]).format(s)
    return s


def schema_of(g, name, description, params):
    """params: [(key, kind, description, required)]; the OpenAI shape, now and then bare."""
    props, required = {}, []
    for key, kind, desc, req in params:
        p = {"type": TYPES.get(kind, "string")}
        if kind.startswith("enum:"): p["enum"] = kind[5:].split(",")
        if kind == "list": p["items"] = {"type": "string"}
        if kind == "numbers": p["items"] = {"type": "number"}
        if desc and g.chance(.85):
            p["description"] = desc
            if g.chance(.2): p = {"description": p.pop("description"), **p}
        props[key] = p
        if req: required.append(key)
    parameters = {"type": "object", "properties": props}
    if required or g.chance(.5): parameters["required"] = required
    if g.chance(.1): parameters["additionalProperties"] = False
    f = {"name": name, "description": description, "parameters": parameters}
    if g.chance(.03): f.pop("description")
    return {"type": "function", "function": f} if not g.chance(.07) else f


class Case:
    """One use of a tool: what the user asks, the arguments, the result, what the assistant then says."""
    def __init__(self, request, args, result, answer, topic): self.request, self.args, self.result, self.answer, self.topic = request, args, result, answer, topic


class Tool:
    def __init__(self, name, family, schema, make): self.name, self.family, self.schema, self.make = name, family, schema, make


# ---------------------------------------------------------------- families written by hand
# (names, descriptions, [(keys, kind, descriptions, required, phrase of an optional one)], requests, result, answers).
# Alternatives are separated by "|"; the first key is the one used in requests and answers.
def W(v, g): return {"temperature": g.int(-12, 39), "conditions": g.pick(COND)}
def OK(v, g): return g.pick([{"status": "ok"}, {"success": True}, {"result": "done"}, {"ok": True}, "ok", "done", "Success."])
def ID(v, g): return {g.pick(["id", "reference", "number"]): g.code(), "status": g.pick(["created", "ok", "confirmed"])}
DONE = "Done.|It is done.|Done, that worked.|All set."

FAMILIES = [
 ("get_weather|weather_lookup|current_weather|fetchWeather|weather.current|getCurrentWeather", "Get the current weather of a city|Look up temperature and conditions of a place|Returns the weather right now",
  [("city|location|place|city_name", "city", "The city|Name of the place, such as Paris", 1, ""), ("unit|units|temperature_unit", "enum:celsius,fahrenheit", "Unit of the temperature", 0, " in {unit}")],
  "What is the weather in {city}{opt}?|How is the weather in {city} today{opt}?|Weather for {city}{opt}, please.|Tell me the current weather in {city}{opt}.|is it cold in {city} right now?|Do I need a coat in {city} today?|what's it like outside in {city}{opt}",
  W, "It is {temperature} degrees and {conditions} in {city}.|In {city} it is {conditions} with {temperature} degrees.|The weather in {city}: {conditions}, {temperature} degrees."),
 ("get_forecast|weather_forecast|forecast|daily_forecast", "Weather forecast for the next days|Forecast for a city over several days",
  [("city|location|place", "city", "The city", 1, ""), ("days|n_days|day_count", "number", "How many days", 1, "")],
  "What will the weather be in {city} over the next {days} days?|Give me a {days} day forecast for {city}.|Forecast for {city}, {days} days.|I travel to {city} for {days} days. What weather should I expect?",
  lambda v, g: {"city": v["city"], "summary": g.pick(COND) + " at first, then " + g.pick(COND), "high": g.int(5, 38), "low": g.int(-15, 15)},
  "For {city}: {summary}, between {low} and {high} degrees.|The forecast for {city} is {summary}, with highs of {high} and lows of {low}."),
 ("calculator|calculate|calc|evaluate|math_eval|compute|evaluate_expression", "Evaluate an arithmetic expression|Calculates the value of an expression|Does exact arithmetic",
  [("expression|expr|formula|input", "expression", "The expression, such as 2 * (3 + 4)", 1, "")],
  "What is {expression}?|Calculate {expression}.|Compute {expression} for me|How much is {expression}?|{expression} = ?|Please work out {expression}.|I need the result of {expression}",
  lambda v, g: {"result": calc(v["expression"])}, "{expression} is {result}.|The result is {result}.|{expression} = {result}|It comes to {result}."),
 ("convert_units|unit_converter|convert|unit_conversion|convertUnit", "Convert a quantity from one unit to another|Unit conversion",
  [("value|amount|quantity|number", "decimal", "The quantity to convert", 1, ""), ("from_unit|from|source_unit|unit_from", "unit", "Unit to convert from", 1, ""), ("to_unit|to|target_unit|unit_to", "unit", "Unit to convert to", 1, "")],
  "Convert {value} {from_unit} to {to_unit}.|How many {to_unit} are {value} {from_unit}?|What is {value} {from_unit} in {to_unit}?|{value} {from_unit} in {to_unit}, please|I have {value} {from_unit}. Express that in {to_unit}.",
  lambda v, g: {"result": g.decimal(), "unit": v["to_unit"]}, "{value} {from_unit} are {result} {to_unit}.|That is {result} {to_unit}.|{value} {from_unit} = {result} {to_unit}"),
 ("convert_currency|exchange|currency_converter|exchange_money", "Convert money between currencies|Uses today's exchange rate",
  [("amount|value|sum", "money", "Amount of money", 1, ""), ("from_currency|from|base|source", "curr", "Currency code to convert from", 1, ""), ("to_currency|to|target|quote", "curr", "Currency code to convert to", 1, "")],
  "How much is {amount} {from_currency} in {to_currency}?|Convert {amount} {from_currency} to {to_currency}.|I have {amount} {from_currency}, what do I get in {to_currency}?|Change {amount} {from_currency} into {to_currency} please",
  lambda v, g: {"converted": g.money(), "rate": round(g.r.uniform(.1, 20), 3)}, "{amount} {from_currency} are {converted} {to_currency}.|You get {converted} {to_currency} at a rate of {rate}."),
 ("web_search|search|search_web|internet_search|google|searchWeb", "Search the web|Searches the internet and returns the best results",
  [("query|q|search_query|text", "words", "What to search for", 1, ""), ("max_results|limit|num_results|count", "number", "How many results", 0, " Show me {max_results} results.")],
  "Search the web for {query}.{opt}|Look up {query} online.{opt}|Find something about {query} on the internet.{opt}|google {query}|Can you search for {query}?{opt}|What can you find about {query}?",
  lambda v, g: [{"title": g.words(2, 4).capitalize(), "url": g.url()} for _ in range(g.int(1, 3))], "The best result is {0[title]}: {0[url]}|I found {0[title]} at {0[url]}.|First result: {0[title]}, {0[url]}"),
 ("fetch_url|open_page|get_page|http_get|webfetch|read_url", "Fetch a web page and return its text|Gets the content of a URL",
  [("url|address|link|uri", "url", "The address of the page", 1, "")],
  "Open {url} and tell me what it says.|What does {url} say?|Fetch {url}.|Read the page at {url} please|Summarise {url} in one line.",
  lambda v, g: {"status": 200, "text": g.sentence()}, "The page says: {text}|It says: {text}"),
 ("create_event|add_event|calendar_create|schedule_meeting|calendar.add|createCalendarEvent", "Add an event to the calendar|Creates a calendar entry",
  [("title|summary|name|subject", "words", "Title of the event", 1, ""), ("date|day|on", "date", "Date as YYYY-MM-DD", 1, ""), ("time|start_time|start|at", "time", "Start time, HH:MM", 1, ""), ("attendee|guest|with", "name", "Who is invited", 0, " with {attendee}"), ("duration|minutes|length", "number", "Length in minutes", 0, " for {duration} minutes")],
  "Put {title} into my calendar on {date} at {time}{opt}.|Schedule {title} for {date}, {time}{opt}.|Add an event called {title} on {date} at {time}{opt}|Please book {title} at {time} on {date}{opt}.|I have {title} on {date} at {time}{opt}, add it to the calendar.",
  ID, "{title} is in your calendar on {date} at {time}.|Added {title} on {date} at {time}.|Done: {title}, {date}, {time}."),
 ("list_events|get_calendar|calendar_list|events_on|calendar.day", "List the calendar's events of a day|What is in the calendar on a date",
  [("date|day|on", "date", "The date as YYYY-MM-DD", 1, "")],
  "What is on my calendar on {date}?|Do I have anything on {date}?|Show me my events of {date}.|list the meetings on {date}",
  lambda v, g: {"events": [{"time": g.time(), "title": g.words(2, 3)}]}, "On {date} you have {events[0][title]} at {events[0][time]}.|There is one event: {events[0][title]} at {events[0][time]}."),
 ("send_email|email|mail_send|sendMail|compose_email", "Send an e-mail|Sends a message by e-mail",
  [("to|recipient|address|to_address", "email", "Address of the recipient", 1, ""), ("subject|title", "words", "Subject line", 1, ""), ("body|text|message|content", "sentence", "Text of the message", 1, "")],
  "Send an email to {to} with the subject {subject} that says: {body}|Email {to}. Subject: {subject}. Text: {body}|Write to {to} about {subject}: {body}|mail {to}, subject {subject}, message {body}",
  OK, "The email to {to} is sent.|I sent {subject} to {to}.|Done, {to} has your message."),
 ("send_message|post_message|chat_send|notify|sms_send", "Send a short message to a person|Sends a text message",
  [("recipient|to|user|contact|name", "name", "Who gets it", 1, ""), ("message|text|body|content", "sentence", "The message", 1, "")],
  "Tell {recipient}: {message}|Send {recipient} a message: {message}|Text {recipient} that {message}|message {recipient} saying {message}",
  OK, "I told {recipient}.|The message to {recipient} is sent.|Sent to {recipient}."),
 ("set_reminder|remind_me|add_reminder|create_reminder|reminder", "Set a reminder|Reminds the user at a time",
  [("text|what|task|message", "words", "What to be reminded of", 1, ""), ("time|at|when", "time", "When, HH:MM", 1, "")],
  "Remind me of {text} at {time}.|Set a reminder for {time}: {text}|At {time} I must not forget {text}|reminder {time} {text}", ID, "I will remind you of {text} at {time}.|Reminder set for {time}."),
 ("set_timer|start_timer|timer|countdown", "Start a timer|Counts down a number of minutes",
  [("minutes|duration|length|amount", "number", "Minutes to count down", 1, ""), ("label|name|title", "word", "A name for the timer", 0, " called {label}")],
  "Set a timer for {minutes} minutes{opt}.|Start a {minutes} minute timer{opt}|Wake me in {minutes} minutes|timer {minutes} min", OK, "The timer runs for {minutes} minutes.|Started: {minutes} minutes."),
 ("translate|translate_text|translator|translation", "Translate a text into another language",
  [("text|input|source_text|content", "sentence", "The text", 1, ""), ("target_language|to|language|target", "lang", "Language to translate into", 1, "")],
  "Translate into {target_language}: {text}|How do you say this in {target_language}: {text}|Put \"{text}\" into {target_language}.|In {target_language}, please: {text}", lambda v, g: {"translation": g.words(3, 6).capitalize() + "."}, "In {target_language}: {translation}|{translation}"),
 ("get_time|current_time|time_in|clock|world_clock", "The current time in a city|Tells the local time",
  [("city|timezone|place|location", "city", "The city", 1, "")], "What time is it in {city}?|Local time in {city}?|How late is it in {city} now?|tell me the time in {city}", lambda v, g: {"time": g.time()}, "It is {time} in {city}.|The time in {city} is {time}."),
 ("stock_price|get_quote|get_stock_price|share_price|quote", "The latest price of a share|Looks up a share's price by its symbol",
  [("symbol|ticker|stock", "ticker", "The share's symbol", 1, "")], "What is the price of {symbol}?|How much is {symbol} trading at?|Get me a quote for {symbol}.|share price of {symbol} please", lambda v, g: {"price": g.money(), "currency": g.pick(CURR)}, "{symbol} is at {price} {currency}.|One share of {symbol} costs {price} {currency}."),
 ("query_database|run_sql|sql|execute_query|db_query", "Run an SQL query|Executes a read-only SQL statement",
  [("query|sql|statement", "sqlq", "The SQL statement", 1, "")], "Run {query}|Execute this query: {query}|What does {query} return?|Please run the SQL {query}", lambda v, g: [{"id": g.number(), "name": g.name()} for _ in range(g.int(1, 3))], "The first row is {0[name]} with id {0[id]}.|It returned {0[name]} ({0[id]}) first."),
 ("find_contact|lookup_contact|get_contact|phonebook|search_contacts", "Find a person in the address book|Contacts by name",
  [("name|person|query|who", "full", "Name of the person", 1, "")], "What is {name}'s phone number?|Find the contact {name}.|How can I reach {name}?|look up {name}", lambda v, g: {"name": v["name"], "phone": g.phone(), "email": g.email()}, "{name} can be reached at {phone} or {email}.|{name}: {phone}, {email}"),
 ("play_music|play_song|play|music_player|start_playback", "Play a song|Plays music by title and artist",
  [("title|song|track", "words", "The song", 1, ""), ("artist|by|band", "full", "Who sings it", 0, " by {artist}"), ("volume|loudness", "number", "Volume", 0, " at volume {volume}")], "Play {title}{opt}.|I want to hear {title}{opt}|Put on {title}{opt}, please.", OK, "Now playing {title}.|{title} is playing."),
 ("get_order|order_status|track_order|lookup_order|orders.get", "Look up an order|Status of an order by its number",
  [("order_id|id|order_number|order", "code", "The order's number", 1, "")], "Where is my order {order_id}?|What is the status of order {order_id}?|Check order {order_id}|Has {order_id} been shipped?", lambda v, g: {"order_id": v["order_id"], "status": g.pick(["shipped", "pending", "delivered", "cancelled", "packed", "delayed"]), "date": g.date()}, "Order {order_id} is {status} since {date}.|It is {status} ({date})."),
 ("book_flight|reserve_flight|flight_booking|flights.book", "Book a flight|Reserves a seat on a flight",
  [("origin|from|departure|from_city", "city", "Where it starts", 1, ""), ("destination|to|arrival|to_city", "city", "Where it goes", 1, ""), ("date|day|departure_date", "date", "Date, YYYY-MM-DD", 1, ""), ("passengers|seats|travellers", "number", "How many people", 0, " for {passengers} people"), ("cabin|class|seat_class", "enum:economy,business,first", "Class of the seat", 0, " in {cabin} class")],
  "Book a flight from {origin} to {destination} on {date}{opt}.|I need to fly from {origin} to {destination} on {date}{opt}|Fly me to {destination} from {origin}, {date}{opt}.|{origin} to {destination} on {date}{opt}, please book it", ID, "Your flight from {origin} to {destination} on {date} is booked.|Booked: {origin} to {destination}, {date}."),
 ("get_route|directions|route_planner|navigate|maps.directions", "Find a route|Directions between two places",
  [("start|origin|from", "city", "Start", 1, ""), ("end|destination|to", "city", "End", 1, ""), ("mode|by|transport", "enum:driving,walking,cycling,transit", "How to travel", 0, " by {mode}")], "How do I get from {start} to {end}{opt}?|Directions from {start} to {end}{opt}.|How far is it from {start} to {end}{opt}?", lambda v, g: {"distance_km": g.number(), "minutes": g.number()}, "It is {distance_km} km from {start} to {end}, about {minutes} minutes.|{distance_km} km, {minutes} minutes."),
 ("set_light|light_control|lamp|turn_light|smart_light", "Switch a light|Sets a lamp's color and brightness",
  [("room|location|where", "word", "Which room", 1, ""), ("state|power|switch", "enum:on,off", "On or off", 1, ""), ("color|colour", "color", "Color of the light", 0, " in {color}"), ("brightness|level|percent", "number", "Brightness", 0, " at {brightness} percent")], "Turn {state} the light in the {room}{opt}.|Switch the {room} light {state}{opt}|Light {state} in the {room}{opt}, please", OK, "The light in the {room} is {state}.|Done, {room}: {state}."),
 ("create_ticket|open_issue|new_issue|file_bug|report_issue", "Open a ticket|Reports a problem to the team",
  [("title|summary|subject", "words", "Short title", 1, ""), ("priority|severity|level", "enum:low,medium,high,critical", "How urgent it is", 1, ""), ("assignee|owner|assigned_to", "name", "Who works on it", 0, " Assign it to {assignee}.")], "Open a {priority} priority ticket titled {title}.{opt}|File an issue: {title}, priority {priority}.{opt}|There is a problem with {title}. Make it a {priority} ticket.{opt}", ID, "The ticket {title} is open with priority {priority}.|I filed {title} as {priority}."),
 ("add_todo|create_task|todo_add|tasks.create|add_task", "Add an item to the to-do list",
  [("task|text|title|item", "words", "What is to be done", 1, ""), ("due|due_date|deadline", "date", "Date, YYYY-MM-DD", 0, " by {due}"), ("tags|labels", "list", "Tags", 0, " with tags {tags}")], "Add {task} to my list{opt}.|I have to do {task}{opt}, note that.|New task: {task}{opt}|put {task} on the to-do list{opt}", ID, "{task} is on your list.|Added {task}."),
 ("git_commit|commit|commit_changes|vcs_commit", "Commit the staged changes|Makes a git commit", [("message|msg|text", "sentence", "Commit message", 1, "")], "Commit with the message: {message}|Make a commit: {message}|git commit, message {message}", lambda v, g: {"commit": "".join(g.pick("0123456789abcdef") for _ in range(7))}, "Committed as {commit}.|The commit is {commit}."),
 ("run_tests|test|execute_tests|pytest|run_test_suite", "Run the tests of a file or folder", [("path|target|file|tests", "path", "What to test", 1, ""), ("verbose|detailed", "bool", "Print more", 0, " with verbose {verbose}")], "Run the tests in {path}{opt}.|Test {path}{opt}|Do the tests of {path} pass?", lambda v, g: {"passed": g.number(), "failed": g.int(0, 5)}, "{passed} tests passed and {failed} failed.|Result for {path}: {passed} passed, {failed} failed."),
 ("average|mean|statistics_mean|compute_average", "The mean of a list of numbers", [("numbers|values|data|list", "numbers", "The numbers", 1, "")], "What is the average of {numbers}?|Compute the mean of {numbers}.|average {numbers}", lambda v, g: {"mean": round(sum(v["numbers"]) / len(v["numbers"]), 2)}, "The average is {mean}.|The mean of {numbers} is {mean}."),
 ("random_number|roll|rand|dice_roll", "A random whole number in a range", [("min|low|from|start", "number", "Smallest", 1, ""), ("max|high|to|end", "number", "Largest", 1, "")], "Give me a random number between {min} and {max}.|Pick a number from {min} to {max}|random {min} {max}", lambda v, g: {"number": g.int(*sorted((v["min"], v["max"])))}, "The number is {number}.|I got {number}."),
 ("create_user|add_user|users.create|register_user", "Create a user account", [("name|full_name|user_name", "full", "Full name", 1, ""), ("email|mail|address", "email", "E-mail address", 1, ""), ("role|permission|group", "enum:admin,editor,viewer,guest", "Role", 1, ""), ("age|years", "number", "Age", 0, " Age: {age}.")], "Create a user {name} with the email {email} as {role}.{opt}|Add {name} ({email}) as {role}.{opt}|Make an account for {name}, {email}, role {role}.{opt}", ID, "{name} now has an account as {role}.|The account of {name} is created."),
 ("python|run_python|execute_code|code_interpreter", "Run Python code and return what it prints", [("code|source|script|program", "pycode", "The code", 1, "")], "Run this in Python: {code}|What does {code} print?|Execute {code}|python: {code}", lambda v, g: g.code(), "It printed {text}.|The output is {text}."),
 ("search_notes|find_notes|notes_search|knowledge_search|memory_search", "Search the user's notes|Looks a word up in the notes", [("query|text|keyword|term", "words", "What to look for", 1, "")], "What do my notes say about {query}?|Find my note about {query}.|search my notes for {query}", lambda v, g: {"notes": [g.sentence()]}, "Your note says: {notes[0]}|I found this: {notes[0]}"),
]
HELD_FAMILIES = [
 ("reserve_table|restaurant_booking", "Reserve a table in a restaurant", [("restaurant|venue", "name", "Name of the restaurant", 1, ""), ("guests|party_size", "number", "Number of guests", 1, ""), ("hour|arrival_time", "time", "When, HH:MM", 1, "")], "Reserve a table at {restaurant} for {guests} guests at {hour}.|We are {guests} people and would like to eat at {restaurant} at {hour}.", ID, "Your table at {restaurant} is reserved for {hour}."),
 ("adjust_thermostat|heating_set", "Set the heating of a room", [("zone|heated_room", "word", "Which room", 1, ""), ("degrees|target_temperature", "number", "Wanted temperature", 1, "")], "Set the heating in the {zone} to {degrees} degrees.|Make it {degrees} degrees in the {zone}.", OK, "The {zone} is set to {degrees} degrees."),
 ("define_word|dictionary", "Look a word up in the dictionary", [("term|headword", "word", "The word", 1, "")], "What does {term} mean?|Look up {term} in the dictionary.", lambda v, g: {"definition": g.words(4, 7)}, "{term}: {definition}"),
 ("transfer_money|bank_transfer", "Transfer money to an account", [("payee|beneficiary", "full", "Who gets the money", 1, ""), ("sum|transfer_amount", "money", "How much", 1, ""), ("iban|account_number", "code", "The account", 1, "")], "Transfer {sum} to {payee}, account {iban}.|Pay {payee} {sum} on account {iban}.", ID, "{sum} went to {payee}."),
 ("track_package|parcel_status", "Where a parcel is", [("tracking_code|parcel_id", "code", "Code of the parcel", 1, "")], "Where is the parcel {tracking_code}?|Track package {tracking_code}.", lambda v, g: {"location": g.city(), "arrives": g.date()}, "The parcel is in {location} and arrives on {arrives}."),
 ("resize_image|scale_picture", "Change the size of a picture", [("image_path|picture", "path", "File of the picture", 1, ""), ("width|new_width", "number", "Width in pixels", 1, ""), ("height|new_height", "number", "Height in pixels", 1, "")], "Resize {image_path} to {width} by {height} pixels.|Make {image_path} {width} wide and {height} high.", OK, "{image_path} is now {width} by {height}."),
 ("lookup_recipe|find_dish", "Find a recipe by its main ingredient", [("ingredient|main_ingredient", "word", "The main ingredient", 1, ""), ("servings|portions", "number", "For how many", 1, "")], "Find a recipe with {ingredient} for {servings} people.|What can I cook with {ingredient} for {servings}?", lambda v, g: {"dish": g.words(2, 3), "minutes": g.number()}, "You can make {dish} in {minutes} minutes."),
 ("water_plants|irrigation_start", "Water a part of the garden", [("bed|garden_bed", "word", "Which bed", 1, ""), ("litres|water_amount", "number", "How much water", 1, "")], "Water the {bed} bed with {litres} litres.|Give the {bed} bed {litres} litres of water.", OK, "The {bed} bed got {litres} litres."),
 ("check_vehicle|car_status", "State of a car by its plate", [("plate|license_plate", "code", "The plate", 1, "")], "How is the car {plate} doing?|Check the vehicle {plate}.", lambda v, g: {"fuel_percent": g.int(1, 100), "mileage": g.number()}, "The car {plate} has {fuel_percent} percent fuel and {mileage} km on it."),
 ("shorten_link|make_short_url", "Make a short link", [("long_url|target_link", "url", "The long address", 1, "")], "Shorten {long_url}.|Make a short link for {long_url}.", lambda v, g: {"short": "https://sho.rt/" + g.code().strip("#")}, "The short link is {short}"),
]


def calc(e):
    try: return round(eval(e, {"__builtins__": {}}), 4)
    except ZeroDivisionError: return "error"


def _ticker(self): return self.ok(lambda: "".join(self.pick("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(self.int(2, 5))))
def _sqlq(self): return self.ok(lambda: self.pick(["SELECT * FROM {a} WHERE {b} = '{c}'", "SELECT {b}, {c} FROM {a} LIMIT {n}", "SELECT COUNT(*) FROM {a}", "SELECT {b} FROM {a} ORDER BY {c} DESC"]).format(a=self.word(), b=self.word(), c=self.word(), n=self.int(1, 50)))
def _pycode(self): return self.ok(lambda: self.pick(["print({a} * {b})", "print(len('{w}'))", "print('{w}'.upper())", "print(sum(range({a})))", "print({a} + {b})", "print(sorted([{a}, {b}]))", "print('{w}' * {d})"]).format(a=self.int(2, 999), b=self.int(2, 999), d=self.int(2, 9), w=self.word()))
Gen.ticker, Gen.sqlq, Gen.pycode = _ticker, _sqlq, _pycode


def restyle(g, name):
    """snake_case as camelCase, kebab-case or with a server's prefix, now and then."""
    parts = name.replace(".", "_").split("_")
    k = g.int(0, 19)
    if k == 0: return parts[0] + "".join(p.capitalize() for p in parts[1:])
    if k == 1: return "-".join(parts)
    if k == 2: return g.pick(["mcp_", "mcp__", "tool_", "api_", "my_"]) + name
    if k == 3 and len(parts) > 1: return parts[-1] + "." + "_".join(parts[:-1])
    if k == 4: return "".join(p.capitalize() for p in parts)
    return name


PRE = ["", "", "", "", "", "Please do this: ", "Hi! ", "Hello, ", "ok, ", "Now: ", "One more thing. ", "Hey, ", "Quick question: ", "Could you help? ", "Next, ", "And then: "]
POST = ["", "", "", "", "", "", " Thanks!", " Thank you.", " Please.", " It is urgent."]


def family_tool(g, fam):
    names, descs, params, requests, result, answers = fam
    name, desc = restyle(g, g.pick(names.split("|"))), g.pick(descs.split("|"))
    keys = {}
    shown = [p for p in params if p[3] or g.chance(.7)]
    plist = []
    for p in shown:
        alt = p[0].split("|")
        key = g.pick(alt) if not g.chance(.4) else alt[0]
        keys[alt[0]] = key
        plist.append((key, p[1], g.pick(p[2].split("|")), p[3]))
    if len(set(keys.values())) < len(keys): keys = {p[0].split("|")[0]: p[0].split("|")[0] for p in shown}; plist = [(p[0].split("|")[0], p[1], p[2].split("|")[0], p[3]) for p in shown]
    if g.chance(.15): desc += g.pick([".", ". Use it whenever the user asks for this.", ". Returns JSON."])
    schema = schema_of(g, name, desc, plist)

    def make(g):
        v, shows, opt = {}, {}, ""
        for p in shown:
            c = p[0].split("|")[0]
            if p[3]: v[c] = g.value(p[1])
        template = g.pick(requests.split("|"))
        for p in shown:
            c = p[0].split("|")[0]
            if not p[3] and "{opt}" in template and g.chance(.35):
                v[c] = g.value(p[1]); opt += p[4].format(**{c: said(v[c])})
        for c, x in v.items(): shows[c] = quoted(g, x) if ("quer" not in c and "expr" not in c and "{" + c + "} =" not in template) else said(x)
        request = g.pick(PRE) + template.format(opt=opt, **shows) + g.pick(POST)
        args = {keys[p[0].split("|")[0]]: v[p[0].split("|")[0]] for p in shown if p[0].split("|")[0] in v}
        r = result(v, g)
        plain = {k: said(x) for k, x in v.items()}
        template = g.pick(answers.split("|"))
        if isinstance(r, dict): answer = template.format(**{**plain, **r})
        elif isinstance(r, list): answer = template.format(*r, **plain)
        else: answer = template.format(text=r, **plain)
        return Case(request, args, r if isinstance(r, str) else json.dumps(r, ensure_ascii=False), answer, template)
    return Tool(name, names, schema, make)


# ---------------------------------------------------------------- tools made of a verb, a noun and any keys
KEYS = [("id", "code", "{v}", "with id {v}"), ("name", "full", "named {v}", "with the name {v}"), ("title", "words", "titled {v}", "with the title {v}", "called {v}"),
        ("date", "date", "on {v}", "dated {v}", "for {v}"), ("time", "time", "at {v}"), ("city", "city", "in {v}", "from {v}"), ("email", "email", "with email {v}", "for {v}", "using {v}"),
        ("amount", "money", "with an amount of {v}", "over {v}", "worth {v}"), ("quantity", "number", "with quantity {v}", "times {v}"), ("count", "number", "with a count of {v}"), ("priority", "enum:low,normal,high,urgent", "with {v} priority", "as {v} priority"),
        ("status", "enum:open,closed,pending,done", "with status {v}", "in status {v}"), ("color", "color", "in {v}", "colored {v}"), ("owner", "name", "owned by {v}", "for {v}", "of {v}"), ("language", "lang", "in {v}"),
        ("path", "path", "at {v}", "from {v}"), ("url", "url", "at {v}", "from {v}"), ("message", "sentence", "saying: {v}", "with the message {v}"), ("tags", "list", "with tags {v}", "tagged {v}"), ("force", "bool", "with force set to {v}", "force {v}"),
        ("limit", "number", "limited to {v}", "at most {v}"), ("phone", "phone", "with phone {v}", "calling {v}"), ("weight", "decimal", "weighing {v}"), ("query", "words", "matching {v}", "about {v}"), ("category", "word", "in category {v}", "of category {v}"), ("reason", "words", "because of {v}", "for the reason {v}")]
GOT = {"status": lambda g: g.pick(["open", "closed", "pending", "active", "done", "blocked", "paused"]), "price": Gen.money, "color": lambda g: g.pick(COLORS), "owner": Gen.full, "manager": Gen.full, "author": Gen.full, "created_by": Gen.name,
       "email": Gen.email, "phone": Gen.phone, "location": Gen.city, "region": Gen.city, "due_date": Gen.date, "deadline": Gen.date, "title": Gen.words, "code": Gen.code, "serial_number": Gen.code, "language": lambda g: g.pick(LANGS),
       **{k: Gen.number for k in "size weight balance rating capacity quantity duration amount total count score speed temperature height width length age level version".split()}}


def made_tool(g):
    """A tool nobody wrote: verb_noun with one to four keys; the request says the verb, the noun and the keys."""
    while True:
        verb, noun = g.pick(VERBS), (g.pick(NOUNS) if not g.chance(.35) else g.pick(g.lex.words))
        if held_out(verb + noun) == g.held: break
    reads = verb in ("get", "fetch", "find", "check", "list", "describe", "open", "load", "review", "track", "count", "verify")
    noun_said = noun.replace("_", " ")
    params, phrases, used = [], {}, set()
    chosen = [("id", "code", "{v}")] if reads or g.chance(.3) else []
    for _ in range(g.pick([1, 1, 2, 2, 3, 4]) - len(chosen)):
        if g.chance(.35):                              # any word as a key
            w = g.word()
            kind = g.pick(["word", "number", "code", "words", "decimal", "name"])
            chosen.append((w, kind, f"with {w} {{v}}", f"{w} = {{v}}", f"{w} set to {{v}}", f"{w} {{v}}"))
        else: chosen.append(g.pick(KEYS))
    for key, kind, *ph in chosen:
        if key in used: continue
        used.add(key)
        shown = key
        if key == "id": shown = g.pick(["id", noun + "_id", "id", noun, "identifier", noun + "Id"])
        elif g.chance(.12): shown = g.pick([noun + "_" + key, key.capitalize(), "new_" + key, key + "_value"])
        words = shown.replace("_", " ")
        desc = g.pick([f"The {words} of the {noun_said}", f"{words.capitalize()}", f"The {words}", "", f"{words.capitalize()} to use"])
        params.append((shown, kind, desc, 1 if g.chance(.8) else 0)); phrases[shown] = ph
    name = restyle(g, g.pick([f"{verb}_{noun}", f"{verb}_{noun}", f"{noun}_{verb}", f"{noun}.{verb}"]))
    article = "an" if noun[0] in "aeiou" else "a"
    desc = g.pick([f"{verb.capitalize()} {article} {noun_said}", f"{verb.capitalize()} the {noun_said}.", f"{verb.capitalize()}s {article} {noun_said} of the user", f"Use this to {verb} {article} {noun_said}."])
    schema = schema_of(g, name, desc, params)

    def make(g):
        args, said_parts, fields = {}, [], []
        for key, kind, _, req in params:
            if not req and g.chance(.5): continue
            args[key] = g.value(kind)
            ph = g.pick(phrases[key]) if not g.chance(.15) else f"{key.replace('_', ' ')}: {{v}}"
            said_parts.append(ph.format(v=quoted(g, args[key])))
        if reads:
            names = g.r.sample(FIELD, g.int(2, 5))
            got = {f: GOT.get(f, Gen.word)(g) for f in names}
            f = g.pick(names)
            result = json.dumps({**({"id": args[params[0][0]]} if params[0][0] in args and g.chance(.5) else {}), **got}, ensure_ascii=False)
            first = said_parts[0] if said_parts else ""
            rest = " ".join(said_parts[1:])
            if g.chance(.6):
                request = g.pick([f"What is the {f.replace('_', ' ')} of the {noun_said} {first} {rest}?", f"{verb.capitalize()} the {noun_said} {first} {rest} and tell me its {f.replace('_', ' ')}.", f"I need the {f.replace('_', ' ')} of {noun_said} {first} {rest}."])
                answer = g.pick([f"The {f.replace('_', ' ')} is {got[f]}.", f"The {f.replace('_', ' ')} of the {noun_said} is {got[f]}.", f"{got[f]}", f"Its {f.replace('_', ' ')} is {got[f]}."])
            else:
                request = g.pick([f"{verb.capitalize()} the {noun_said} {first} {rest}.", f"Can you {verb} the {noun_said} {first} {rest}?", f"Please {verb} {noun_said} {first} {rest}"])
                answer = f"Here is the {noun_said}: " + ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in got.items()) + "."
        else:
            tail = g.pick([" ", " ", ", "]).join(said_parts) if g.chance(.5) else (" and ".join(said_parts))
            request = g.pick([f"{verb.capitalize()} the {noun_said} {tail}.", f"{verb.capitalize()} {article} {noun_said} {tail}.", f"Please {verb} the {noun_said} {tail}", f"Can you {verb} {article} {noun_said} {tail}?", f"I want to {verb} {article} {noun_said} {tail}.", f"{verb} {noun_said} {tail}"])
            if g.chance(.5):
                rid = g.code()
                result = json.dumps({"status": "ok", g.pick(["id", "reference", noun + "_id"]): rid})
                answer = g.pick([f"Done. The reference is {rid}.", f"The {noun_said} has the id {rid}.", f"That worked: {rid}."])
            else:
                result = OK(None, g); result = result if isinstance(result, str) else json.dumps(result)
                answer = g.pick(DONE.split("|") + [f"The {noun_said} is taken care of."])
        request = g.pick(PRE) + re.sub(r" +([.,?])", r"\1", re.sub(r"  +", " ", request)).strip() + g.pick(POST)
        return Case(request, args, result, answer, f"{verb} {article} {noun_said}")
    return Tool(name, verb + noun, schema, make)


# ---------------------------------------------------------------- tools that published agents declare
KIND_OF = [("e?mail", "email"), ("url|link", "url"), ("path|file|dir", "path"), ("date|day", "date"), ("time|start|end", "time"), ("phone", "phone"), ("city|origin|destination|location", "city"), ("user|owner|author|recipient|name", "full"),
           ("query|pattern|title|subject|reason|term|keyword", "words"), ("text|message|content|body|description|comment", "sentence"), ("id$|number|code|key|token|symbol", "code")]


def kind_of(key, p):
    """The kind of value that a declared parameter takes, or None for those that are not written in one word."""
    t = p.get("type")
    if p.get("enum") and all(isinstance(x, str) and "," not in x for x in p["enum"]): return "enum:" + ",".join(p["enum"])
    if t in ("integer", "number", "boolean"): return {"integer": "number", "number": "decimal", "boolean": "bool"}[t]
    if t == "array": return {"string": "list", "integer": "numbers"}.get((p.get("items") or {}).get("type"))
    return next((k for pattern, k in KIND_OF if re.search(pattern, key, re.I)), "word") if t == "string" else None


def declared_tool(g, f=None):
    """A schema that a published agent declares, with a request in the words of its description; values are ours."""
    for _ in range(50):
        f = g.pick(g.declared); props, need = f["parameters"]["properties"], f["parameters"].get("required", [])
        if all(kind_of(k, props.get(k, {})) for k in need): break
    does = re.split(r"(?<=[a-z)])[.:,\n]", f["description"].strip())[0][:110]
    first, _, rest = does.partition(" ")
    if re.fullmatch("[A-Z][a-z]+s", first) and not first.endswith("ss"): first = re.sub("(ch|sh|ss)es$", r"\1", first) if re.search("(ch|sh|ss)es$", first) else first[:-1]
    does = (first.lower() + " " + rest).strip()
    schema = {"type": "function", "function": f} if not g.chance(.07) else f

    def make(g):
        args = {k: g.value(kind_of(k, p)) for k, p in props.items() if k in need or (kind_of(k, p) and g.chance(.15))}
        style, words = g.int(0, 3), lambda k: re.sub(r"(?<=[a-z])(?=[A-Z])", " ", k).replace("_", " ").lower()
        if style == 0: given = ", ".join(f"{words(k)} {quoted(g, v)}" for k, v in args.items())
        elif style == 1: given = ". ".join(f"{words(k).capitalize()}: {quoted(g, v)}" for k, v in args.items())
        elif style == 2: given = "with " + " and ".join(f"{words(k)} {quoted(g, v)}" for k, v in args.items())
        else: given = "; ".join(f"{k} = {said(v)}" for k, v in args.items())
        if not args: given = ""
        lead = g.pick([f"{does[0].upper()}{does[1:]}", f"Please {does}", f"Can you {does}", f"I want you to {does}"]) if g.chance(.85) else g.pick(["Use", "Call"]) + " " + f["name"]
        request = g.pick(PRE) + (lead + (" " if style in (0, 2) else ": " if style == 3 else ". ") + given).strip().rstrip(".:") + "." + g.pick(POST)
        got = {k: GOT.get(k, Gen.word)(g) for k in g.r.sample(FIELD, g.int(1, 3))}
        if g.chance(.3): r = OK(None, g); r, answer = r if isinstance(r, str) else json.dumps(r), g.pick(DONE.split("|"))
        else: r, answer = json.dumps(got, ensure_ascii=False), g.pick(["", "Here it is: ", "I got: "]) + ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in got.items()) + "."
        return Case(request, args, r, answer, does)
    return Tool(f["name"], f["name"], schema, make)


def any_tool(g):
    k = g.r.random()
    if g.held: return family_tool(g, g.pick(HELD_FAMILIES)) if k < .5 else made_tool(g)
    if k < .12 and g.declared: return declared_tool(g)
    return family_tool(g, g.pick(FAMILIES)) if k < .56 else made_tool(g)
