import type { Settings } from './setting.js';

/** The text of `.env.example` of the service `title`: each setting with what it does, what it accepts, and its default. */
export function environmentExample(title: string, settings: Settings): string {
  const head =
    `Settings of the ${title}. Copy this file to .env, or set environment variables, which override .env. Settings are ` +
    'read once, at start. A wrong setting stops the start with a message that names it. Each line shows the default.';
  // A limit has no variable.
  const texts = Object.values(settings).map(({ name, shown, accepts, about }) =>
    name === '' ? '' : `\n${comment(`${about} Accepts ${accepts}.`)}#${name}=${shown}\n`,
  );
  return comment(head) + texts.join('');
}

function comment(text: string): string {
  const lines = ['#'];
  for (const word of text.split(/\s+/)) {
    const line = `${lines.at(-1)} ${word}`;
    if (line.length < 120) lines[lines.length - 1] = line;
    else lines.push(`# ${word}`);
  }
  return `${lines.join('\n')}\n`;
}
