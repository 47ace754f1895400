import { type Application, BASE_PATH, type Config } from '#settings';

/**
 * The text on the console after a start, in lines of at most 80 columns: the address of the service, the first API key if
 * one was made, with a command to try it, and where the documentation is.
 */
export function welcome(application: Application, config: Config, port: number, firstKey?: string): string {
  const address = `http://localhost:${port}`;
  const base = `${address}${BASE_PATH}`;
  const interfaces = config.host === '0.0.0.0' || config.host === '::' ? ' (all interfaces)' : '';
  const lines = [`The ${application.info.title} listens on ${base}${interfaces}`];
  if (firstKey !== undefined) {
    lines.push(
      '',
      'Your API key, shown only once:',
      '',
      `  export API_KEY=${firstKey}`,
      '',
      'Add a pet:',
      '',
      `  curl -H "Authorization: Bearer $API_KEY" \\`,
      `    -H 'Content-Type: application/json' \\`,
      `    -d '{"name":"Rex","categoryId":7}' ${base}/pets`,
      '',
    );
  }
  lines.push(`Documentation: ${address}/docs`);
  return lines.join('\n');
}
