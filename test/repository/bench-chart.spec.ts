import { chart } from '../../bench/chart.js';

const bars = [
  { workload: 'list', server: 'petstore', cpuUs: 30, databaseCpuUs: 10 },
  { workload: 'list', server: 'a & <b>', cpuUs: 60, databaseCpuUs: 100 },
  { workload: 'get', server: 'petstore', cpuUs: 20, databaseCpuUs: 0 },
];
const svg = chart('CPU a request', bars);

/** Widths of the bars in one part of the chart, in their order, without the legend. */
const widths = (part: string): number[] =>
  [...svg.matchAll(new RegExp(`<rect class="${part}" [^>]*width="([\\d.]+)"`, 'g'))].slice(1).map(([, w]) => Number(w));

test('the chart of the benchmark has a proportional bar with its sum for each server and workload', () => {
  const [longest] = widths('database').sort((a, b) => b - a);
  const unit = (longest as number) / 100;
  expect(widths('server').map((width) => Math.round(width / unit))).toEqual([30, 60, 20]);
  expect(widths('database').map((width) => Math.round(width / unit))).toEqual([10, 100, 0]);
  expect([...svg.matchAll(/>(\d+) µs</g)].map(([, sum]) => Number(sum))).toEqual([40, 160, 20]);
  expect([...svg.matchAll(/class="workload"[^>]*>([^<]+)</g)].map(([, name]) => name)).toEqual(['list', 'get']);
});

test("the chart of the benchmark follows the reader's colour scheme, fits its frame, and loads and runs nothing", () => {
  expect(svg).toMatch(/@media \(prefers-color-scheme: dark\) \{\s+text \{ fill: #e/);
  expect(svg).toContain('a &amp; &lt;b>');
  expect(svg.replace('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|<script|@import|url\(|href/);
  // All bars are inside the picture.
  const [, width = 0, height = 0] = (/viewBox="0 0 (\d+) (\d+)"/.exec(svg) ?? []).map(Number);
  for (const [, x, y, w] of svg.matchAll(/<rect class="\w+" x="([\d.]+)" y="(\d+)" width="([\d.]+)"/g)) {
    expect(Number(x) + Number(w)).toBeLessThanOrEqual(width);
    expect(Number(y)).toBeLessThan(height);
  }
});
