(() => {
  const field = document.getElementById("search"), list = document.getElementById("found");
  let chosen = 0, shown = [];
  const score = (name, words) => {
    const low = name.toLowerCase(), last = low.slice(low.lastIndexOf(".") + 1);
    let sum = 0;
    for (const word of words) {
      if (last === word || low === word) sum += 100;
      else if (last.startsWith(word)) sum += 60 - Math.min(last.length - word.length, 30);
      else if (low.includes(word)) sum += 20 - Math.min(low.length / 10, 10);
      else return 0;
    }
    return sum - (low.startsWith("torch.tensor.") ? 3 : 0) - low.split(".").length;
  };
  const draw = () => {
    list.replaceChildren(...shown.map(([name, address, summary], i) => {
      const item = document.createElement("li"), link = document.createElement("a");
      const title = document.createElement("b"), text = document.createElement("small");
      link.href = address;
      link.className = i === chosen ? "chosen" : "";
      title.textContent = name;
      text.textContent = summary;
      link.append(title, text);
      link.addEventListener("click", () => { list.hidden = true; });
      item.append(link);
      return item;
    }));
    list.hidden = shown.length === 0;
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = words.length === 0 ? [] : NAMES.map(row => [score(row[0], words), row]).filter(([s]) => s > 0)
      .sort((a, b) => b[0] - a[0]).slice(0, 30).map(([, row]) => row);
    chosen = 0;
    draw();
  });
  field.addEventListener("keydown", event => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : shown.length - 1)) % Math.max(shown.length, 1);
      draw();
      event.preventDefault();
    } else if (event.key === "Enter" && shown[chosen]) {
      list.hidden = true;
      location.href = shown[chosen][1];
    } else if (event.key === "Escape") list.hidden = true;
  });
  document.addEventListener("keydown", event => {
    if (event.key === "/" && document.activeElement !== field) { field.focus(); event.preventDefault(); }
  });
  document.addEventListener("click", event => { if (!event.target.closest(".search")) list.hidden = true; });
  if (matchMedia("(min-width: 54rem)").matches) document.querySelector(".side details").open = true;
})();
