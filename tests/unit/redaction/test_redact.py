"""Secrets out of everything that is written, at a cost that grows with the text alone."""

from __future__ import annotations

import base64
import html
import json
import xml.etree.ElementTree as ET
from urllib.parse import quote, urlencode

from _pytest._io.saferepr import saferepr
from _pytest.junitxml import bin_xml_escape
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.redaction import REDACTED, Redactor, is_secret_name, make_distinct_names
from tests.tables import each_row

NONE = Redactor()
FILL = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\ndef==\n-----END RSA PRIVATE KEY-----"

TOKENS = {
    "github": "ghp_" + FILL[:36],
    "github app": "ghs_" + FILL[:36],
    "github fine-grained": "github_pat_" + FILL + "_" + FILL,
    "openai": "sk-proj-" + FILL,
    "anthropic": "sk-ant-api03-" + FILL + "-AA",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "aws session": "ASIAIOSFODNN7EXAMPLE",
    "google": "AIza" + FILL[:35],
    "slack": "xoxb-1234567890-" + FILL[:24],
    "gitlab": "glpat-" + FILL[:20],
    "npm": "npm_" + FILL[:36],
    "pypi": "pypi-" + FILL * 2,
    "stripe": "sk_live_" + FILL[:24],
    "groq": "gsk_" + FILL + FILL[:12],
    "xai": "xai-" + FILL * 2,
    "perplexity": "pplx-" + FILL + FILL[:8],
    "cerebras": "csk-" + FILL + FILL[:8],
    "nvidia": "nvapi-" + FILL + "-" + FILL[:23],
    "together": "tgp_v1_" + FILL + "_" + FILL[:2],
    "langsmith": "lsv2_pt_" + "0123456789abcdef" * 2 + "_0123456789",
    "tavily": "tvly-dev-" + FILL[:32],
    "replicate": "r8_" + FILL[:37],
    "google oauth": "ya29." + FILL,
    "databricks": "dapi" + "0123456789abcdef" * 2,
    "jwt": f"eyJ{FILL[:20]}.eyJ{FILL[:20]}.{FILL[:20]}",
    "pem": PEM,
}


def test_the_key_of_azure_storage_goes_and_its_account_stays():
    text = f"AccountName=desk;AccountKey={FILL}{FILL}==;EndpointSuffix=core"
    assert NONE.text(text) == f"AccountName=desk;AccountKey={REDACTED};EndpointSuffix=core"


@each_row("token", TOKENS.values(), ids=TOKENS)
@each_row("text", ["{}", "key={}, more", '{{"key": "{}"}}', "({})"])
def test_tokens_are_known_by_their_shape(token, text):
    assert NONE.text(text.format(token)) == text.format(REDACTED)


@each_row(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
        ('"authorization": "Basic dXNlcjpwdw=="', '"authorization": "Basic [redacted]"'),
        ("curl -H 'x: Bearer abcdefghijklmnop'", "curl -H 'x: Bearer [redacted]'"),
        ("https://bob:hunter2@host/x", "https://bob:[redacted]@host/x"),
        ("redis://:hunter2@host", "redis://:[redacted]@host"),
    ],
)
def test_only_the_secret_part_goes(text, clean):
    assert NONE.text(text) == clean


@each_row(
    "text",
    [
        "a task-force-of-people-who-like-long-names",
        "risk-sk-1",
        "AKIA is a prefix",
        "https://example.com:8080/a@b",
        "the bearer of this letter",
        "eyJ",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
    ],
)
def test_ordinary_text_stays(text):
    assert NONE.text(text) == text


SECRET = 'p"ä<w&rd/+ 7'


@each_row(
    "form",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        repr(SECRET)[1:-1],
        html.escape(SECRET),
        quote(SECRET, safe=""),
        base64.b64encode(SECRET.encode()).decode(),
    ],
)
def test_a_variables_secret_goes_in_every_form(form):
    redactor = Redactor.from_environ({"DESK_PASSWORD": SECRET})
    assert redactor.text(f"before {form} after") == f"before {REDACTED} after"


@each_row("secret", ["correct horse battery", "a b+c/d=é 12345"])
def test_a_secret_sent_as_a_form_goes(secret):
    """A form writes blanks as `+`, which no other way of writing an address does."""
    form = urlencode({"password": secret, "user": "bob"})
    clean = Redactor.from_environ({"DESK_PASSWORD": secret}).text(form)
    assert clean == f"password={REDACTED}&user=bob"


@given(st.binary(max_size=9), st.binary(max_size=9))
def test_base64_hides_no_secret_at_any_offset(before, after):
    secret = b"correct horse battery"
    redactor = Redactor.from_environ({"DESK_PASSWORD": secret.decode()})
    text = redactor.text(base64.b64encode(before + secret + after).decode())
    assert REDACTED in text
    left = text.replace(REDACTED, "")
    assert len(left) <= len(base64.b64encode(before + after)) + 8


@each_row(
    "name",
    ["GITHUB_TOKEN", "OPENAI_API_KEY", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "MYAPIKEY",
    "PGPASSWORD", "SSH_PRIVATE_KEY", "GOOGLE_CREDENTIALS", "BASIC_AUTH", "SLACK_WEBHOOK_URL",
    "INPUT_GITHUB-TOKEN", "token", "STRIPE_KEY", "VAULT_SECRET_ID", "SVC_TOKEN2", "SVC_TOKEN_2",
    "AZURE_STORAGE_CONNECTION_STRING", "DB_CONN_STR", "SENTRY_DSN"],
)  # fmt: skip
def test_names_that_say_secret(name):
    assert is_secret_name(name)
    redactor = Redactor.from_environ({name: "Zx9-plain-value"})
    assert redactor.text("a Zx9-plain-value b") == "a [redacted] b"


@each_row(
    "name",
    ["PATH", "GITHUB_TOKEN_PATH", "MAX_TOKENS", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "PWD",
    "AUTHOR", "KEYBOARD", "CACHE_KEY", "TOKEN_LIMIT", "PASSWORD_FILE", "AUTH_PROVIDER",
    "CLIENT_ID", "AWS_ACCESS_KEY_ID2", "MAX_TOKENS2"],
)  # fmt: skip
def test_names_that_only_sound_so(name):
    assert Redactor.from_environ({name: "Zx9-plain-value"}).secrets == ()


@each_row("value", ["short", "true", "required", "12345678"])
def test_values_too_common_to_be_secret(value):
    assert Redactor.from_environ({"DESK_TOKEN": value}).secrets == ()


def test_the_password_of_a_url_is_secret_by_itself():
    redactor = Redactor.from_environ({"DATABASE_URL": "postgres://desk:Zx9plain@host/db"})
    assert redactor.text("login failed for Zx9plain") == "login failed for [redacted]"


@each_row(
    ("value", "password"),
    [
        ("postgres://desk:Zx9plain@host/db", "Zx9plain"),
        ("postgres://desk:Zx9@plain@host/db", "Zx9@plain"),
        ("postgres://desk:Zx9%40plain@host/db", "Zx9%40plain"),
        ("postgres://desk:Zx9%40plain@host/db", "Zx9@plain"),
        ("a=1 postgres://desk:Zx9plain@host/db", "Zx9plain"),
        ("jdbc:postgresql://host/db?user=desk&password=Zx9@plain", "Zx9@plain"),
        ("Server=host;User=desk;Password=Zx9@plain;", "Zx9@plain"),
    ],
)
def test_a_password_inside_of_a_value_is_secret_whatever_its_name(value, password):
    redactor = Redactor.from_environ({"ORDERS_DB": value})
    assert redactor.text(f"host denied {password}!") == f"host denied {REDACTED}!"


def test_common_passwords_of_test_databases_blot_nothing_out():
    redactor = Redactor.from_environ({"DATABASE_URL": "postgres://postgres:postgres@localhost/db"})
    assert redactor.text("postgres is up") == "postgres is up"


@each_row("name", ["AWS_SECRET_ACCESS_KEY", "DESK_TOKEN", "DB_PASSWORD"])
def test_a_secret_may_look_like_a_path(name):
    redactor = Redactor.from_environ({name: "/wJalrXUtnFEMI/K7MDENG"})
    assert redactor.text("/wJalrXUtnFEMI/K7MDENG") == REDACTED


def test_a_path_to_credentials_is_no_secret():
    environ = {"GOOGLE_APPLICATION_CREDENTIALS": "/run/secrets/gcp.json"}
    assert Redactor.from_environ(environ).secrets == ()


def test_short_lines_of_a_long_secret_are_secret():
    redactor = Redactor.from_environ({"DESK_SECRET": "line-One1\nline-Two2\nx\nline-Thr3"})
    assert redactor.text("E  line-One1\nE  line-Two2, x") == "E  [redacted]\nE  [redacted], x"


def test_the_secrets_of_a_service_account_are_secret():
    account = {"type": "service_account", "private_key": "Zx9-plain-value", "auth_uri": "https://a"}
    redactor = Redactor.from_environ({"GCP_CREDENTIALS": json.dumps(account)})
    assert redactor.text("a service_account: Zx9-plain-value") == "a service_account: [redacted]"


ODD = {
    "quotes": "p\"ss'w<rd\\12345",
    "entities": "Aa1&bb<cc\"dd'ee",
    "controls": 'Aa1\tbb&cc"dd\x01ee',
    "lines": "short-1a\nshort&2b",
    "unicode": "pässwörd-\x7f-日本<&>'\"",
    "slashes": "a/b\\n\\'c\\\\d&amp;",
    "signs": "!$%&/()=?<>",
}


def in_xml(text: str) -> str:
    element = ET.Element("a", message=bin_xml_escape(text))
    element.text = bin_xml_escape(text)
    return ET.tostring(element, encoding="unicode")


WRITERS = {
    "raw": str,
    "repr": repr,
    "ascii": ascii,
    "repr in double quotes": lambda text: repr(f"it's {text}"),
    "repr in single quotes": lambda text: repr(f'a "{text}'),
    "json": json.dumps,
    "json as it is": lambda text: json.dumps(text, ensure_ascii=False),
    "json of repr": lambda text: json.dumps(repr(text)),
    "json of repr of more": lambda text: json.dumps(repr({"password": text, "it's": '"'})),
    "json of json": lambda text: json.dumps(json.dumps({"password": text})),
    "folded": lambda text: " ".join(text.split()),
    "spaced": lambda text: text.replace("\t", " ").replace("\n", " "),
    "html": html.escape,
    "url": lambda text: quote(text, safe=""),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "xml": in_xml,
    "xml of repr": lambda text: in_xml(repr(text)),
    "xml of json": lambda text: in_xml(json.dumps(text)),
    "xml of repr of more": lambda text: in_xml(f"assert {repr([text, 1])!s} == 2"),
    "xml of url": lambda text: in_xml(quote(text)),
    "json of xml": lambda text: json.dumps(in_xml(text)),
}


@each_row("write", WRITERS.values(), ids=WRITERS)
@each_row("secret", ODD.values(), ids=ODD)
def test_odd_secrets_go_whatever_wrote_them(secret, write):
    redactor = Redactor.from_environ({"DESK_PASSWORD": secret})
    written = write(secret)
    # What is written around the secret, and nothing of the secret itself.
    frame = write("\0").replace("\0", "") if write in {str, json.dumps} else None
    clean = redactor.text(written)
    assert REDACTED in clean
    if frame is not None and "\n" not in secret:
        assert clean in {REDACTED, f'"{REDACTED}"'}
    for run in ("12345", "bb&amp;", "Aa1", "dd", "rd-", "日本", "short", "c\\"):
        if run in secret:
            assert run not in clean


ONE_LINE = st.text(min_size=8, max_size=40).filter(lambda text: len(f"{text}.".splitlines()) == 1)


@given(ONE_LINE, st.text(max_size=5), st.text(max_size=5))
def test_no_secret_is_left_in_xml_that_stays_xml(secret, before, after):
    secret = f"Zx9{secret}Yw8"
    redactor = Redactor.from_environ({"DESK_PASSWORD": secret})
    clean = "".join(redactor.xml_lines(in_xml(before + secret + after).splitlines(True)))
    element = ET.fromstring(clean)
    assert "Zx9" not in clean
    assert "Yw8" not in clean
    assert element.tag == "a"


def test_a_secret_that_looks_like_markup_leaves_the_markup():
    secret = '<?xml version="1.0"?>\n<settings password="x">\n<failure message="a'
    redactor = Redactor.from_environ({"MAVEN_SECRET": secret})
    text = '<?xml version="1.0"?>\n<suite><failure message="a">&lt;failure message="a</failure></suite>'
    clean = "".join(redactor.xml_lines(text.splitlines(True)))
    assert clean == text.replace('&lt;failure message="a', REDACTED)


LONG = "".join(f"{number:03}+/aZ" for number in range(65))[:450]


@each_row(
    "shown",
    [
        LONG[:118] + "..." + LONG[-118:],
        LONG[:16] + "..." + LONG[-16:],
        "x" + LONG[:200] + "yz",
        repr(LONG)[:119] + "...'",
    ],
)
def test_parts_of_a_long_secret_go_too(shown):
    clean = Redactor.from_environ({"DESK_TOKEN": LONG}).text(shown)
    assert all(LONG[at : at + 8] not in clean for at in range(len(LONG) - 8))
    assert len(clean.replace(REDACTED, "")) <= 6


@each_row("secret", [*ODD.values(), LONG, "Zx9-plain-value-of-29-letters"])
@each_row("maxsize", [30, 240])
@each_row("shape", [lambda s: s, lambda s: {"k": s, "l": [s] * 20}])
@each_row("write", [str, in_xml, json.dumps, lambda text: f"{text[:-1]}\u2026"])
def test_what_pytest_shows_of_a_secret_goes(secret, maxsize, shape, write):
    redactor = Redactor.from_environ({"DESK_TOKEN": secret})
    clean = redactor.text(write(f"assert {saferepr(shape(secret), maxsize)} == 'x'"))
    for text in (secret, repr(secret)[1:-1], repr(f'"{secret}')[2:-1]):
        assert all(text[at : at + 6] not in clean for at in range(len(text) - 5))


def test_ordinary_text_around_an_ellipsis_stays():
    redactor = Redactor.from_environ({"DESK_TOKEN": "Zx9-plain-value"})
    text = "loading... done, Zx9... and value... and ...Zx9-, Zx9-plain"
    assert redactor.text(text) == text
    assert redactor.text("Zx9-p...alue, Zx9-") == "[redacted]...[redacted], Zx9-"
    assert redactor.text("'...n-val...\n") == "'...[redacted]...\n"


def test_a_long_secret_is_one_mark():
    redactor = Redactor.from_environ({"DESK_TOKEN": LONG})
    assert redactor.text(f"a {LONG} b {LONG}") == "a [redacted] b [redacted]"


@each_row(
    "value",
    [
        "https://hooks.example.com/services/T01234567/B01234567/abcdefghijKLMNOP",
        "DefaultEndpointsProtocol=https;AccountName=desk;AccountKey=abcdefghijKLMNOP0123456789",
    ],
)
def test_what_secrets_have_in_common_with_others_stays(value):
    redactor = Redactor.from_environ({"DESK_CONNECTION_STRING": value})
    assert redactor.text(value) == REDACTED
    assert "abcdefghijKLMNOP" not in redactor.text(f"left: {value[-36:]}")
    ordinary = "see https://hooks.example.com/docs and DefaultEndpointsProtocol=https;AccountName=x"
    assert redactor.text(ordinary) == ordinary


def test_half_an_entity_is_never_left():
    redactor = Redactor.from_environ({"DESK_TOKEN": "x<" + LONG[:60], "B_TOKEN": "quot;xyz-123"})
    assert redactor.text("&gt;" + LONG[:60]) == REDACTED
    assert redactor.text("a&quot;xyz-123") == f"a{REDACTED}"


def test_each_line_of_a_long_secret_is_secret():
    line = "MIIEpAIBAAKCAQEA7"
    redactor = Redactor.from_environ({"DEPLOY_KEY": f"-----BEGIN X-----\n{line}\n-----END X-----"})
    assert redactor.text(f"found {line}!") == "found [redacted]!"


def test_longer_secrets_go_first():
    redactor = Redactor.from_environ({"A_TOKEN": "abcdefgh-1", "B_TOKEN": "abcdefgh-1234"})
    assert redactor.text("abcdefgh-1234") == REDACTED


def test_values_are_redacted_in_keys_and_depth():
    token = TOKENS["github"]
    value = {token: [{"a": [f"x {token}"]}, 1, None, True, 1.5]}
    assert NONE.value(value) == {REDACTED: [{"a": [f"x {REDACTED}"]}, 1, None, True, 1.5]}


def test_a_key_over_many_lines_of_output_is_one_mark():
    lines = [f"a\n{PEM}".replace("\n", " \n") + " tail\n", *f"b\n{PEM} c\nd\n".splitlines(True)]
    assert "".join(NONE.lines(lines)) == f"a \n{REDACTED} tail\nb\n{REDACTED}\n{REDACTED} c\nd\n"


def test_a_key_that_never_ends_does_not_swallow_the_rest():
    lines = ["-----BEGIN PRIVATE KEY-----\n", *(f"line {number}\n" for number in range(1000))]
    assert list(NONE.lines(lines))[-1] == "line 999\n"


KEY_LINE = "MIIEpAIBAAKCAQEA7bq2Zx9+/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM"


@each_row("newline", ["\n", "\r\n", "\\n", "\\\\n", "&#10;", "\nE       ", "\n  "])
@each_row("rest", [" == 'x'", "' == 'x'", "...'", "{0}and the rest", "</failure>"])
def test_a_key_cut_off_ends_where_its_lines_end(newline, rest):
    key = newline.join(["-----BEGIN RSA PRIVATE KEY-----", KEY_LINE, KEY_LINE[:20]])
    after = rest.format(newline)
    assert NONE.text(f"a {key}{after} and more") == f"a {REDACTED}{after} and more"


def test_a_key_with_headers_goes_with_them():
    headers = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB12\n\n"
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{headers}{KEY_LINE}\n"
    assert NONE.text(f"{key}and the rest") == f"{REDACTED}\nand the rest"


def test_two_keys_of_which_one_is_cut_off():
    text = f"-----BEGIN PRIVATE KEY-----\n{KEY_LINE}\nthen some text\n{PEM} end"
    assert NONE.text(text) == f"{REDACTED}\nthen some text\n{REDACTED} end"


def test_a_key_cut_off_in_xml_leaves_the_rest_of_the_file():
    key = f"-----BEGIN PRIVATE KEY-----\n{KEY_LINE}\n{KEY_LINE[:9]}"
    cases = "".join(in_xml(f"assert '{text}") for text in [key, "second", PEM, key])
    clean = "".join(NONE.xml_lines(f"<b>{cases}</b>".splitlines(True)))
    texts = [(a.get("message"), a.text) for a in ET.fromstring(clean)]
    cut_off = f"assert '{REDACTED}"
    assert [message for message, _ in texts] == [cut_off, "assert 'second", cut_off, cut_off]
    assert texts[1][1] == "assert 'second"
    assert KEY_LINE[:9] not in clean


def test_output_after_a_key_cut_off_is_kept():
    lines = ["-----BEGIN PRIVATE KEY-----\n", f"{KEY_LINE}\n", f"{KEY_LINE}\n", "1 failed in 2 s\n"]
    assert list(NONE.lines(lines)) == [f"{REDACTED}\n", "1 failed in 2 s\n"]


def test_names_that_differ_only_in_a_secret_stay_apart():
    redact = Redactor.from_environ({"A_TOKEN": "secret-a1", "B_TOKEN": "secret-b2"}).text
    names = ["t secret-b2", "t secret-a1", "u", "v secret-a1", "v [redacted]"]
    assert make_distinct_names(names, redact) == {
        "t secret-a1": "t [redacted]",
        "t secret-b2": "t [redacted]#2",
        "u": "u",
        "v secret-a1": "v [redacted]#2",
        "v [redacted]": "v [redacted]",
    }


def test_keys_that_differ_only_in_a_secret_are_all_kept():
    a, b = TOKENS["github"], TOKENS["github app"]
    assert NONE.value({a: 1, b: 2}) == {REDACTED: 1, f"{REDACTED}#2": 2}


@each_row("text", [f"x\n{TOKENS['openai']}", f"x\n{TOKENS['aws']}", f"x\n{TOKENS['jwt']}",
    "x\nBearer abcdefghijklmnop", '{"authorization": "Basic dXNlcjpwdw=="}'])  # fmt: skip
def test_shapes_are_found_in_json_in_json_too(text):
    assert REDACTED in NONE.text(json.dumps(json.dumps(text)))


def test_the_secrets_are_not_in_the_repr():
    assert "Zx9" not in repr(Redactor.from_environ({"DESK_TOKEN": "Zx9-plain-value"}))


HOSTILE = [
    "sk-", "eyJ", "eyJaaaaaaaa.", "eyJ" + "a" * 8000 + ".", "://", "://a:", "a:b@", "AKIA", "ghp_",
    "authorization ", "authorization: bearer ", "Bearer ", "-----BEGIN ", "xox", "npm_",
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\na\n", "...", "...a", "\u2026000+",
    LONG[:16], LONG[-16:], LONG[:16] + LONG[-16:], LONG[:40] + "...", "&", "<",
]  # fmt: skip


@each_row("piece", HOSTILE, ids=lambda piece: piece[:30])
@each_row("redactor", [NONE, Redactor.from_environ({"A_TOKEN": LONG})], ids=["", "known"])
def test_a_large_hostile_text_takes_a_moment(piece, redactor):
    text = piece * (300_000 // len(piece))
    # Hundredths of a second; a pattern that tries again from every place takes minutes, and
    # meets the time limit of every test.
    assert redactor.text(text) is not None


def test_a_redactor_that_learns_knows_the_old_and_the_new():
    first = Redactor.from_environ({"DESK_TOKEN": "old-Zx9-plain-value-of-the-desk-0123"})
    both = first.with_secrets(["new-Qy7-plain-value-of-the-bank-4567", "short"])
    text = "old-Zx9-plain-value-of-the-desk-0123 new-Qy7-plain-value-of-the-bank-4567 short"
    assert both.text(text) == "[redacted] [redacted] short"
    assert both.text("new-Qy7-plain-val...") == "[redacted]..."
    assert first.text("new-Qy7") == "new-Qy7"
    assert both == both.with_secrets([])


def test_the_middle_of_a_secret_is_recognized_between_two_ellipses_only():
    redactor = Redactor.of(["s3cret-Pa55-wOrd-77"])
    assert "Pa55" not in redactor.text("it was '...-Pa55-w...'")
    assert redactor.text("it was ...-Pa55-w") == "it was ...-Pa55-w"
