(() => {
  "use strict";
  const list = document.getElementById("samples");
  if (!list) return;
  document.documentElement.classList.add("js");
  const field = (id) => document.getElementById(id);
  const rows = [...list.children];
  const shown = field("shown");
  const filter = () => {
    const words = field("search").value.toLowerCase();
    let count = 0;
    for (const row of rows) {
      const fits = (name) => !field(name).value || row.dataset[name] === field(name).value;
      row.hidden = !(fits("subset") && fits("kind") && fits("run") && row.textContent.toLowerCase().includes(words));
      count += row.hidden ? 0 : 1;
    }
    shown.textContent = `${count} of ${rows.length}`;
  };
  const sort = () => {
    const key = field("sort").value;
    const ordered = key === "place" ? rows : [...rows].sort((a, b) => a.dataset[key].localeCompare(b.dataset[key]));
    list.append(...ordered);
  };
  for (const id of ["search", "subset", "kind", "run"]) field(id).addEventListener("input", filter);
  field("sort").addEventListener("input", sort);
  filter();
})();
