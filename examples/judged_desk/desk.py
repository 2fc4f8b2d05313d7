"""A support desk whose replies are scripted, so that the example needs no model."""

REPLIES = {
    "late_parcel": (
        "My parcel is two days late.",
        "I am sorry about that. It arrives tomorrow before noon.",
        "I'm sorry, it is held at customs. You get it on Friday.",
    ),
    "wrong_size": (
        "The shoes are too small.",
        "Of course you can change them: print the label in your account.",
        "Happy to help: I have sent you a label for the exchange.",
    ),
    "refund_time": (
        "When do I get my money back?",
        "Glad you ask: within five days, to the card you paid with.",
        "Thank you for waiting. The money is on its way since Monday.",
    ),
    "broken_cup": (
        "The cup arrived broken.",
        "I am sorry! A new one leaves today, and you can keep the old one.",
        "Sorry to hear it. Please send us a picture, then we replace it.",
    ),
    "invoice": (
        "I need an invoice for my company.",
        "Of course. It is in your mailbox now, with your VAT number.",
        "Invoices are in your account.",
    ),
    "password": (
        "I cannot log in.",
        "No problem, I am happy to help: I have sent you a link for a new password.",
        "Please use the link that I have just sent you.",
    ),
    "gift_card": (
        "Does my gift card expire?",
        "Thank you for asking: it is valid until the end of next year.",
        "I am glad to look it up: it is valid for three more months.",
    ),
    "cancel_order": (
        "Please cancel order 1001.",
        "Of course, it is cancelled and you pay nothing.",
        "I'm sorry, it has left already. Please refuse it at the door.",
    ),
    "address": (
        "I have moved. Can you change my address?",
        "Glad to: the parcel now goes to Mill Road 5.",
        "Please change it in your account, or send it to me.",
    ),
    "discount": (
        "My code does not work.",
        "I am sorry. It ended on Sunday, so here is a new one: AUTUMN.",
        "Codes end. It is our policy, sorry.",
    ),
    "stock": (
        "When is the lamp back?",
        "Thank you for asking! We expect it on the 12th and will write to you.",
        "We are sorry, it will not be made again. Please look at the model Luna.",
    ),
    "warranty": (
        "Is the drill still under warranty?",
        "Happy to check: yes, until March.",
        "No, sorry. By our policy it ended last week, but we repair it at half the price.",
    ),
    "rude_driver": (
        "Your driver was rude to me.",
        "I am very sorry. I have reported it, and a manager will call you today.",
        "Thank you for telling us. The carrier has to answer by Friday, then we call you.",
    ),
    "double_charge": (
        "I was charged twice.",
        "I'm sorry, you are right. The second payment is refunded today.",
        "Please wait a week, of course it sorts itself out.",
    ),
    "allergy": (
        "Are there nuts in the bar?",
        "Thank you for asking: yes, almonds and hazelnuts.",
        "I am happy to say that it is delicious!",
    ),
    "opening_hours": (
        "When are you open?",
        "Of course: every day from 9 to 18, on Sunday from 10.",
        "Happy to tell you: from 9 to 18, and on Sunday from 10.",
    ),
}


def reply(scenario, iteration):
    """Return the reply of an iteration: an agent does not answer alike each time."""
    return REPLIES[scenario][1 + (iteration - 1) % 2]
