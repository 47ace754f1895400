import { randomInt } from 'node:crypto';
import { escapeLength, unescapedUnit } from '../text/escapes.js';

const BACKSLASH = 0x5c;
/** Up to this number, comparing the hashes of all names with each other is faster than a table. */
const SMALL = 8;
/** The prime of the hash function FNV-1a for 32 bits. */
const FNV_PRIME = 0x01000193;
/** Another one in each process, so that no client can choose names whose hashes collide. */
const SEED = randomInt(2 ** 32);

/**
 * Finds a name that one object holds twice. It makes no string of a name, so members that are skipped cost no memory, and
 * its time is linear in the length of the text.
 *
 * Objects lie within each other, so their names lie on a stack: {@link begin} before the first name of an object,
 * {@link add} for each, {@link end} behind the last.
 */
export class RepeatedNames {
  private text = '';
  /** Names on the stack. */
  private count = 0;
  private hashes = new Int32Array(64);
  /** Index of the first character of each name, and of the quote behind the last. */
  private starts = new Int32Array(64);
  private ends = new Int32Array(64);
  /** Open addressing: an index into `hashes`, plus 1; 0 is a free slot. */
  private table = new Int32Array(0);

  /** Empties the stack, for the names of another text. */
  reset(text: string): void {
    this.text = text;
    this.count = 0;
  }

  /** Returns what {@link end} takes. */
  begin(): number {
    return this.count;
  }

  /** Adds the valid name between two quotes. */
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

  /** Removes the names of the innermost object. Returns the start of one that the object holds twice, else -1. */
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

  /** FNV-1a over the UTF-16 units that the name stands for, mixed so that each bit depends on all units. */
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
