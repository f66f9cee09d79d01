// Colours: as the system says, or as the reader chooses; the choice is not stored, since a page on disk is many pages.
function setUpTheme() {
  const button = document.getElementById("theme");
  const themes = [["", "Auto", "auto, as the system"], ["light", "Light", "light"], ["dark", "Dark", "dark"]];
  let chosen = 0;
  button.addEventListener("click", () => {
    chosen = (chosen + 1) % themes.length;
    const [theme, shown, said] = themes[chosen];
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    button.textContent = shown;
    button.setAttribute("aria-label", `Colours: ${said}`);
  });
}
