// Adds a button to each sample of /docs/guide that copies it.
/* global document, getSelection, isSecureContext, navigator */

for (const sample of document.querySelectorAll('.page pre')) {
  const button = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Copy' });
  const trouble = document.createElement('output');
  const code = /** @type {HTMLElement} */ (sample.querySelector('code'));
  button.addEventListener('click', async () => {
    trouble.value = '';
    try {
      // Undefined on insecure origins.
      await navigator.clipboard.writeText(String(code.textContent));
      button.textContent = 'Copied';
    } catch {
      getSelection()?.selectAllChildren(code);
      const cause = isSecureContext
        ? 'The browser does not allow this page to copy.'
        : 'Browsers copy only from https.';
      trouble.value = `${cause} The sample is selected: copy it with the keyboard or the menu of the browser.`;
    }
  });
  sample.prepend(button, trouble);
}
