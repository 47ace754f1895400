import { chown, rename, symlink } from 'node:fs/promises';

/** Makes a file belong to another user: root gives it away, any other user puts a link to a directory of root in its place. */
export async function giveAway(path: string): Promise<void> {
  if (process.getuid?.() === 0) await chown(path, 65_534, 65_534);
  else {
    await rename(path, `${path}.own`);
    await symlink('/', path);
  }
}

/** Undoes `giveAway`. */
export async function takeBack(path: string): Promise<void> {
  if (process.getuid?.() === 0) await chown(path, 0, 0);
  else await rename(`${path}.own`, path);
}
