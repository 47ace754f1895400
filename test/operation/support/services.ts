import { ServiceProcess } from '../../support/service-process.js';

/** Processes of the service, or of other programs, that share a working directory and most settings. */
export class Services {
  private readonly running: ServiceProcess[] = [];

  /**
   * @param home working directory, where no `.env` is
   * @param settings settings of every process; those given to `start` override them
   */
  constructor(
    private readonly home: string,
    private readonly settings: Readonly<Record<string, string>> = {},
  ) {}

  /** @param program Node's arguments for another program than the built service */
  start(settings: Readonly<Record<string, string>> = {}, program?: readonly string[]): ServiceProcess {
    const service = new ServiceProcess({ ...this.settings, ...settings }, this.home, program && { program });
    this.running.push(service);
    return service;
  }

  /** Starts a process that must refuse to start with exit code 1 and one line on standard error, which ends as a sentence. Returns that line. */
  async refusal(settings: Readonly<Record<string, string>>, program?: readonly string[]): Promise<string> {
    const service = this.start(settings, program);
    const code = await service.ended;
    expect([code, service.stderr]).toEqual([1, expect.stringMatching(/^petstore: [^\n]+[.?]\n$/) as string]);
    // Nest would report the failure a second time, in the log.
    expect(service.stdout).not.toMatch(/"level":(50|60)|\n? +at /);
    return service.stderr.trimEnd();
  }

  /** Ends all processes, and expects no API key in their logs. */
  async kill(): Promise<void> {
    const services = this.running.splice(0);
    await Promise.all(services.map((service) => service.kill()));
    const { BOOTSTRAP_API_KEY: key = 'bootstrap-key-of-the-tests' } = this.settings;
    for (const { stdout } of services) {
      expect(stdout).not.toMatch(/pets_[0-9A-Za-z]{12}/);
      expect(stdout).not.toContain(key);
    }
  }
}
