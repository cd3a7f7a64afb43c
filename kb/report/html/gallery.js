"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const rows = read("kb-gallery"), said = read("kb-words");
  const box = document.getElementById("cards"), count = document.getElementById("count"), input = document.getElementById("words");
  const cards = [...box.children], sort = document.getElementById("sort"), filters = [...document.querySelectorAll("[data-filter]")];
  // Runs of ideographs are looked for by their pairs, so that a phrase need not stand together; other words by themselves.
  const terms = (text) => (text.normalize("NFKC").toLowerCase().match(/[\u3400-\u9fff]+|[^\s\u3400-\u9fff]+/g) || []).flatMap((word) =>
    /[\u3400-\u9fff]/.test(word) && word.length > 2 ? [...word.slice(1)].map((_, at) => word.slice(at, at + 2)) : [word]);
  const held = (value, wanted) => Array.isArray(value) ? value.includes(wanted) : value === wanted;
  const score = (row, words) => words.reduce((sum, word) => sum + row.text.includes(word), 0);
  function show() {
    const words = terms(input.value), by = Number(sort.value);
    const found = rows.map((row, at) => ({ at, hits: score(row, words), key: row.keys[by] })).filter(({ at, hits }) =>
      (!words.length || hits >= Math.ceil(words.length * 0.6)) && filters.every((filter) => !filter.value || held(rows[at][filter.dataset.filter], filter.value)));
    found.sort((a, b) => b.hits - a.hits || a.key - b.key || a.at - b.at);
    cards.forEach((card) => { card.hidden = true; });
    found.forEach(({ at }) => { cards[at].hidden = false; box.append(cards[at]); });
    count.textContent = `${found.length} ${said.count}`;
  }
  input.addEventListener("input", show);
  [sort, ...filters].forEach((control) => control.addEventListener("change", show));
  document.querySelector("form.controls").addEventListener("submit", (event) => event.preventDefault());
  show();
})();
