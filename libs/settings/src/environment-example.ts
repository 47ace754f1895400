import type { Settings } from './setting.js';

const LINE_LENGTH = 119;

/**
 * The text of `.env.example`: each setting with what it does, what it accepts, and its default.
 *
 * @param title the name of the service
 */
export function environmentExample(title: string, settings: Settings): string {
  const head =
    `Settings of the ${title}. Copy this file to .env, or set environment variables, which override .env. Settings are ` +
    'read once, at start. A wrong setting stops the start with a message that names it. Each line shows the default.';
  // A limit has no variable.
  const entries = Object.values(settings).filter(({ name }) => name !== '');
  const texts = entries.map(
    ({ name, shown, accepts, about }) => `\n${comment(`${about} Accepts ${accepts}.`)}#${name}=${shown}\n`,
  );
  return comment(head) + texts.join('');
}

function comment(text: string): string {
  const lines = ['#'];
  for (const word of text.split(' ')) {
    const line = `${lines.at(-1)} ${word}`;
    if (line.length <= LINE_LENGTH) lines[lines.length - 1] = line;
    else lines.push(`# ${word}`);
  }
  return `${lines.join('\n')}\n`;
}
