// Package browser tests the dashboard as people use it: the real program, started as they start it, in a
// headless Chromium, against real API servers. Every page that a test opens is checked for accessibility
// (WCAG 2.2, A and AA) by axe-core, for errors in the browser's console, and for being wider than the window.
//
// No controller runs: tests write the status of objects themselves, so that pages are the same each time.
//
// The tests need Chromium and npm, which fetches axe-core, and are skipped where one is missing; with
// BROWSER=1 in the environment, they fail instead. With SCREENSHOTS=FOLDER, pictures of all pages are
// written there.
package browser
