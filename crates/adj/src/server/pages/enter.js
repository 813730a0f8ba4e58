// The secret of the link is in the part of the address that no server sees: it is sent in a body, once.
(async () => {
  const said = document.getElementById("said");
  const code = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  if (!code) {
    said.textContent = "This link has no code. Run `adj url` in the project for a fresh one.";
    return;
  }
  try {
    const answer = await fetch("/session", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code }),
    });
    if (answer.ok) {
      location.replace("/");
      return;
    }
    const problem = await answer.json();
    said.textContent = [problem.detail, problem.hint].filter(Boolean).join(": ");
  } catch (error) {
    said.textContent = "The server does not answer: " + error.message;
  }
})();
