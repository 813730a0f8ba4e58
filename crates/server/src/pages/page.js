// A browser that opens an address sends its cookie, which every other port of this machine is sent too, and nothing else: so
// it is shown this page, which asks for the same address again with the key that only pages of this server can read.
(async () => {
  const main = document.querySelector("main");
  const signedOut = [...main.childNodes];
  let key = null;
  try {
    key = localStorage.getItem("adj-page-key");
  } catch (error) {
    main.append("This browser lets the page store nothing, so it cannot be signed in: " + error.message);
    return;
  }
  if (key) main.replaceChildren();
  const headers = { accept: "text/html, */*", ...(key && { "x-adj-page-key": key }) };
  let answer;
  try {
    answer = await fetch(location.pathname + location.search, { headers, cache: "no-store" });
  } catch (error) {
    main.textContent = "The server does not answer: " + error.message;
    return;
  }
  if (answer.status === 401) {
    main.replaceChildren(...signedOut);
    return;
  }
  const text = await answer.text();
  if ((answer.headers.get("content-type") || "").startsWith("text/html")) {
    const page = new DOMParser().parseFromString(text, "text/html");
    document.title = page.title;
    main.replaceChildren(...page.querySelector("main").childNodes);
  } else {
    const shown = document.createElement("pre");
    shown.textContent = text;
    main.replaceChildren(shown);
  }
  const anchor = decodeURIComponent(location.hash.slice(1));
  if (anchor) document.getElementById(anchor)?.scrollIntoView();
})();
