// The secret of the link is in the part of the address that no server sees: it is sent in a body, once. The answer sets a
// cookie and brings the page key, which is kept where no other port of this machine can read it.
(async () => {
  const said = document.getElementById("said");
  const code = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  if (!code) {
    said.textContent = "This link has no code. Run `adj url` in the project for a fresh one.";
    return;
  }
  try {
    const key = localStorage.getItem("adj-page-key");
    const answer = await fetch("/session", {
      method: "POST",
      headers: { "content-type": "application/json", ...(key && { "x-adj-page-key": key }) },
      body: JSON.stringify({ code }),
    });
    const result = await answer.json();
    if (answer.ok) {
      localStorage.setItem("adj-page-key", result.pageKey);
      location.replace("/");
      return;
    }
    said.textContent = [result.detail, result.hint].filter(Boolean).join(": ");
  } catch (error) {
    said.textContent = "You could not be signed in: " + error.message;
  }
})();
