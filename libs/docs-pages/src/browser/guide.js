// Adds a button to each sample of /docs/guide that copies it. Browsers allow that on https and localhost.
/* global document, navigator */

for (const sample of navigator.clipboard ? document.querySelectorAll('.page pre') : []) {
  const button = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Copy' });
  const text = String(sample.textContent);
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  });
  sample.prepend(button);
}
