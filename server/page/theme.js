// server/page/theme.js - the stored choice of light or dark, set before the first paint. A script of its own, no module.
try {
  const theme = localStorage.getItem("nib.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // No storage: the system's choice it is.
}
