"""The page: it asks once a second what changed and shows it. Windows are images drawn by the server."""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>visdom</title>
<link rel="stylesheet" href="/page.css"></head>
<body><header><select id="env"></select><span id="state"></span></header><main id="windows"></main>
<script src="/page.js"></script></body></html>
"""

STYLE = """body { margin: 0; font: 13px sans-serif; background: #f3f3f3; color: #222 }
header { padding: 6px 10px; background: #333; color: #ddd } header span { margin-left: 1em }
main { display: flex; flex-wrap: wrap; align-items: flex-start; gap: 8px; padding: 8px }
section { background: white; border: 1px solid #ccc; border-radius: 3px; padding: 4px; resize: both; overflow: auto }
section h2 { margin: 0 0 4px; font-size: 12px; color: #666; font-weight: normal }
section img { display: block; max-width: 100% } section.image img { min-width: 128px; image-rendering: pixelated }
section.text { max-width: 40em } p.caption { margin: 4px 0 0 }
"""

SCRIPT = """'use strict';
const main = document.getElementById('windows'), choice = document.getElementById('env'), state = document.getElementById('state');
const shown = new Map();  // id -> section
let env = location.pathname.startsWith('/env/') ? decodeURIComponent(location.pathname.slice(5)) : 'main';
let version = 0, fresh = true;

function element(kind, parent, text) {
  const e = document.createElement(kind);
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
}

function show(w) {
  let section = shown.get(w.id);
  if (!section) { section = element('section', main); shown.set(w.id, section); }
  section.replaceChildren();
  section.className = w.type.startsWith('image') ? 'image' : w.type;
  element('h2', section, w.type === 'plot' ? w.id : w.title || w.id);  // a plot has its title in it
  if (w.html !== undefined) {  // cleaned by the server: elements without attributes
    element('div', section).innerHTML = w.html;
    return;
  }
  const image = element('img', section), last = (w.captions || ['']).length - 1;
  const turn = i => {
    image.src = '/window?' + new URLSearchParams({env, win: w.id, v: w.version, i});
    if (caption) caption.textContent = w.captions[i];
  };
  const caption = w.captions ? element('p', section) : null;
  if (last > 0) {
    const slider = element('input', section);
    slider.type = 'range'; slider.max = last; slider.value = last;
    slider.oninput = () => turn(slider.value);
  }
  if (caption) caption.className = 'caption';
  turn(last);
}

function envs(names) {
  if (!names.includes(env)) names.push(env);
  if (names.join('\\n') === Array.from(choice.options, o => o.value).join('\\n')) return;
  choice.replaceChildren();
  for (const name of names) element('option', choice, name);
  choice.value = env;
}

choice.onchange = () => {
  env = choice.value; version = 0; fresh = true;
  history.replaceState(null, '', '/env/' + encodeURIComponent(env));
};

async function poll() {
  const asked = env;
  try {
    const answer = await fetch('/windows?' + new URLSearchParams({env, since: version}));
    const news = await answer.json();
    if (asked === env) {
      if (fresh) { main.replaceChildren(); shown.clear(); fresh = false; }
      envs(news.envs);
      for (const [id, section] of shown) if (!news.order.includes(id)) { section.remove(); shown.delete(id); }
      news.windows.forEach(show);
      version = news.version;
      state.textContent = news.order.length ? '' : 'no windows yet';
    }
  } catch (error) {
    state.textContent = 'the program that served this page has ended; what it logged is still there: python -m rushlight visdom';
  }
  setTimeout(poll, 1000);
}
poll();
"""
