"""What stands around a refusal: regret, disclaimers, offers, questions, and the turn to an answer."""

from __future__ import annotations

from .grammar import SELF
from .rule import Rule, rule

AROUND_RULES: tuple[Rule, ...] = (
    # What stands around a refusal.
    rule(
        "regret",
        "regret",
        r"^(?:oh,? |well,? )?(?:(?:i|we) (?:am|are) (?:\w+ )?sorry|sorry|(?:i"
        r"|we) (?:do )?(?:sincerely )?apologi[sz]e|(?:my |our )?apologies"
        r"|(?:i|we) regret|forgive me|unfortunately|regrettably|i am afraid)\b",
        "formulas",
    ),
    rule(
        "identity",
        "identity",
        r"\b(?:as|(?:i|we) (?:am|are)(?: just| only| simply| merely)?|being)(?: just"
        r"| only)?,? an? (?:\w+[ -]){0,3}?(?:ai|a\.i\.|artificial"
        r"|language model|llm|machine|chatbot|bot|virtual assistant|assistant|computer program|program|neural|model)\b",
        "formulas",
    ),
    rule(
        "no-opinion",
        "no opinion",
        rf"{SELF} (?:\w+ )?(?:do not|cannot) (?:\w+ly )?(?:have|hold|possess|form|experience)(?: any"
        rf"| my own)? (?:personal|opinions?|beliefs?"
        rf"|feelings?|preferences?|emotions?|views?|biases|thoughts|a (?:preference|personal|view)|subjective|human)",
        "formulas",
        "mistral",
    ),
    rule(
        "courtesy",
        "courtesy",
        r"^(?:(?:i|we) (?:understand|appreciate|see|hear|get|recogni[sz]e|know|realize)\b|thank|of course|sure"
        r"|i am (?:here|happy|glad)|certainly"
        r"|as (?:an? )?\w+|hello|hi\b|great question|that is an? \w+ question|my purpose"
        r"|(?:first,? )?(?:it is|please) (?:\w+ )?(?:important |crucial |worth )?(?:to )?(?:not(?:e|ing)"
        r"|remember|understand)\b)",
        "formulas",
        "llama2",
    ),
    rule(
        "alternative",
        "alternative",
        r"^(?:instead|if you|is there|perhaps|rather|let us|let me know|(?:however|but),? if|feel free|(?:i"
        r"|we) (?:would|will|can|could)"
        r" (?:be (?:happy|glad)|strongly|recommend|suggest|encourage|advise|help|gladly))|\b(?:happy|glad"
        r"|here) to (?:help|assist|discuss|answer)"
        r"|\b(?:anything|something) else\b",
        "formulas",
    ),
    rule(
        "question",
        "question",
        r"\?$|\b(?:could|can|would|will) you (?:please )?(?:provide|clarify|give|share|tell|rephrase|specify"
        r"|explain|describe|upload|send|let)"
        r"|\bplease (?:provide|clarify|share|specify|rephrase|upload|give)|\bneed more (?:information|context|details)",
        "formulas",
    ),
    rule(
        "turn",
        "turn",
        r"^here (?:is|are)\b|\b(?:but|however|that said|that being said|nevertheless|nonetheless|still"
        r"|having said that),? ?(?:[^.]{0,60}, )?"
        r"(?:(?:i|we) (?:can|could|would|will|might|may)(?: still)? (?:tell|say|offer|share|suggest|choose|pick"
        r"|select|go with|guess|give"
        r"|provide|try|explain|lean|describe|note that)(?!(?: you)? that (?:it|this|that|\w+ing \w+) (?:is"
        r"|would be) (?:not|never|wrong|in))|here (?:is|are)|the (?:\w+ ){0,2}?(?:answer|word|option|choice"
        r"|sentence)|my (?:answer|choice|guess))"
        r"|\bif (?:i|we) (?:had|have|must|were) (?:to|forced)|\b(?:my|the) (?:\w+ )?(?:answer|choice|guess"
        r"|pick) (?:is|would be)\b"
        r"|\b(?:i|we) (?:would|will) (?:choose|pick|select|go with|say|lean)\b|\banswer:",
        "formulas",
        "llama2",
    ),
    # The reason is that there is no such thing: nothing is declined that could have been answered.
    rule(
        "absence",
        "absence",
        r"\bdoes not (?:actually )?exist|\b(?:is|as) (?:an? )?(?:\w+ )?fictional\b|\bis not a real person"
        r"|\bnot explicitly (?:mentioned|stated)",
        "llama2",
        "mistral",
        "gpt4",
    ),
    rule(
        "incoherent",
        "absence",
        r"\bnot (?:a )?factually coherent|\bfalse assumption that|\b(?:question|it) (?:does not make|makes no) sense",
        "llama2",
    ),
)
