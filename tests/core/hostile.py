"""What a model may say to take over a page, a table or a terminal that shows it."""

from __future__ import annotations

RUN = "window.OWNED=1;alert(1)"
HOSTILE = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</style></title></textarea></noscript></template><script>{RUN}</script>",
    f"<img src=x onerror='{RUN}'>",
    f"<svg onload='{RUN}'><animate onbegin='{RUN}' attributeName=x dur=1s>",
    f'" onmouseover="{RUN}" onfocus="{RUN}" autofocus tabindex=0 x="',
    f"' onclick='{RUN}' style='position:fixed;inset:0' x='",
    f"` onmouseover=`{RUN}` ${{{RUN}}}",
    f"javascript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f"--><!-- <iframe srcdoc='<script>parent.{RUN}</script>'> ]]><![CDATA[",
    f"{{{{ {RUN} }}}}{{% raw %}}",
    '{"__proto__": {"OWNED": 1}}',
    f"\u2028{RUN}\u2029//",
    f"\u202e{RUN}\u2066",
    f"a\x00<scr\x00ipt>{RUN}</script>\x1b]0;x\x07\x1b[31m",
    "<base href='http://127.0.0.1:9/'><link rel=stylesheet href='//127.0.0.1:9/x.css'><img src='http://127.0.0.1:9/'>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'><form action='http://127.0.0.1:9/'><button>",
    "\U0001f600" * 50 + "x" * 5000,
    "\ud800<i>\udfff",
]
