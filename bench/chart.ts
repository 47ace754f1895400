/** The processor time in µs that a server uses for a request of a workload. */
export interface Bar {
  readonly workload: string;
  readonly server: string;
  readonly cpuUs: number;
  readonly databaseCpuUs: number;
}

const WIDTH = 720;
const LABELS = 190;
const FIGURES = 70;
const BAR = 14;
const ROW = 20;
const GROUP_GAP = 34;
const TOP = 74;

/**
 * A chart as an SVG document: for each workload a bar for each server, with the processor time of the server and of
 * PostgreSQL end to end. Its colours follow the reader's light or dark theme. It needs no script and loads nothing.
 */
export function chart(title: string, bars: readonly Bar[]): string {
  const workloads = [...new Set(bars.map(({ workload }) => workload))];
  const longest = Math.max(...bars.map((bar) => bar.cpuUs + bar.databaseCpuUs));
  const scale = (WIDTH - LABELS - FIGURES) / longest;
  const parts: string[] = [];
  let y = TOP;
  for (const workload of workloads) {
    parts.push(`<text class="workload" x="0" y="${y}">${escape(workload)}</text>`);
    y += 8;
    for (const bar of bars.filter((each) => each.workload === workload)) {
      const server = bar.cpuUs * scale;
      const database = bar.databaseCpuUs * scale;
      const sum = bar.cpuUs + bar.databaseCpuUs;
      const middle = y + BAR - 3;
      parts.push(
        `<text x="${LABELS - 8}" y="${middle}" text-anchor="end">${escape(bar.server)}</text>`,
        rectangle('server', LABELS, y, server),
        rectangle('database', LABELS + server, y, database),
        `<text x="${(LABELS + server + database + 6).toFixed(1)}" y="${middle}">${sum.toFixed(0)} µs</text>`,
      );
      y += ROW;
    }
    y += GROUP_GAP;
  }
  const height = y - GROUP_GAP + 8;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escape(title)}">
<style>
  text { font: 12px system-ui, sans-serif; fill: #1f2328; }
  .title { font-size: 14px; font-weight: 600; }
  .workload { font-weight: 600; }
  .server { fill: #0969da; }
  .database { fill: #9a6700; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .server { fill: #58a6ff; }
    .database { fill: #d29922; }
  }
</style>
<text class="title" x="0" y="16">${escape(title)}</text>
${rectangle('server', 0, 30, BAR)}
<text x="20" y="41">server</text>
${rectangle('database', 80, 30, BAR)}
<text x="100" y="41">PostgreSQL</text>
${parts.join('\n')}
</svg>
`;
}

function rectangle(name: string, x: number, y: number, width: number): string {
  return `<rect class="${name}" x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${BAR}"/>`;
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
