// Remembers on /docs/guide in which language the reader wants the samples. Without this script the tabs work one by one.
/* global document, localStorage */
const STORED = 'sample-language';

function choose(language) {
  for (const button of document.querySelectorAll('.samples input')) {
    if (button.value === language) button.checked = true;
  }
}

document.addEventListener('change', ({ target }) => {
  if (!target.matches('.samples input')) return;
  // The choice moves other samples, too: keep the one that was clicked where it is.
  const { top } = target.getBoundingClientRect();
  choose(target.value);
  document.documentElement.scrollTop += target.getBoundingClientRect().top - top;
  localStorage.setItem(STORED, target.value);
});

choose(localStorage.getItem(STORED));
