import { buildPeers } from '../../bench/peers.js';

test('the benchmark leaves out a server whose toolchain is missing, and says what to install', () => {
  const { PATH } = process.env;
  const leftOut: string[][] = [];
  try {
    process.env['PATH'] = '/nowhere';
    expect(buildPeers(['go', 'rust'], (name, reason) => leftOut.push([name, reason])).size).toBe(0);
  } finally {
    process.env['PATH'] = PATH;
  }
  expect(leftOut).toEqual([
    ['go', 'There is no Go (Debian: apt-get install golang-go).'],
    ['rust', 'There is no Rust (Debian: apt-get install cargo).'],
  ]);
});
