import { randomInt } from 'node:crypto';
import { escapeLength, unescapedUnit } from '../text/escapes.js';

const BACKSLASH = 0x5c;
/** Up to this number of names, comparing all pairs of hashes is faster than a hash table. */
const SMALL = 8;
/** The prime of the hash function FNV-1a for 32 bits. */
const FNV_PRIME = 0x01000193;
/** Random in each process, so that clients cannot choose names whose hashes collide. */
const SEED = randomInt(2 ** 32);

/**
 * Finds a name that occurs twice in one object. It builds no strings of names, so skipped members take no memory. Its time
 * is linear in the length of the text.
 *
 * Objects are nested, so their names are kept on a stack: call {@link begin} before the first name of an object,
 * {@link add} for each name, and {@link end} after the last.
 */
export class RepeatedNames {
  private text = '';
  /** Number of names on the stack. */
  private count = 0;
  private hashes = new Int32Array(64);
  /** Indexes of each name's first character, and of the quote after its last one. */
  private starts = new Int32Array(64);
  private ends = new Int32Array(64);
  /** A hash table with open addressing: each slot is an index into `hashes` plus 1, or 0 if it is free. */
  private table = new Int32Array(0);

  /** Empties the stack, for the names of another text. */
  reset(text: string): void {
    this.text = text;
    this.count = 0;
  }

  /** Returns the parameter for {@link end}. */
  begin(): number {
    return this.count;
  }

  /** Adds a valid name, by the indexes of its first character and of the closing quote. */
  add(start: number, end: number): void {
    if (this.count === this.hashes.length) {
      this.hashes = grown(this.hashes);
      this.starts = grown(this.starts);
      this.ends = grown(this.ends);
    }
    this.hashes[this.count] = this.hashOf(start, end);
    this.starts[this.count] = start;
    this.ends[this.count] = end;
    this.count++;
  }

  /** Removes the names of the innermost object. Returns the start of a repeated name, or -1 if there is none. */
  end(first: number): number {
    const repeated = this.count - first <= SMALL ? this.compareAll(first) : this.searchTable(first);
    this.count = first;
    return repeated < 0 ? -1 : (this.starts[repeated] as number);
  }

  private compareAll(first: number): number {
    for (let index = first + 1; index < this.count; index++) {
      for (let earlier = first; earlier < index; earlier++) {
        if (this.isSame(earlier, index)) return index;
      }
    }
    return -1;
  }

  private searchTable(first: number): number {
    const size = 2 ** Math.ceil(Math.log2(2 * (this.count - first)));
    if (this.table.length < size) {
      this.table = new Int32Array(size);
    } else {
      this.table.fill(0, 0, size);
    }
    for (let index = first; index < this.count; index++) {
      let slot = (this.hashes[index] as number) & (size - 1);
      for (let entry = this.table[slot] as number; entry !== 0; entry = this.table[slot] as number) {
        if (this.isSame(entry - 1, index)) return index;
        slot = (slot + 1) & (size - 1);
      }
      this.table[slot] = index + 1;
    }
    return -1;
  }

  private isSame(one: number, other: number): boolean {
    return this.hashes[one] === this.hashes[other] && this.nameAt(one) === this.nameAt(other);
  }

  private nameAt(index: number): string {
    return JSON.parse(this.text.slice((this.starts[index] as number) - 1, (this.ends[index] as number) + 1)) as string;
  }

  /** FNV-1a over the UTF-16 units of the unescaped name, mixed so that each bit depends on all units. */
  private hashOf(start: number, end: number): number {
    const { text } = this;
    let hash = SEED;
    for (let at = start; at < end;) {
      const code = text.charCodeAt(at);
      if (code === BACKSLASH) {
        hash = Math.imul(hash ^ unescapedUnit(text, at), FNV_PRIME);
        at += escapeLength(text, at);
      } else {
        hash = Math.imul(hash ^ code, FNV_PRIME);
        at++;
      }
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    return hash ^ (hash >>> 13);
  }
}

function grown(array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * array.length);
  larger.set(array);
  return larger;
}
