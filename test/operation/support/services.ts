import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceProcess } from '../../support/service-process.js';

/** Processes of the service, or of other programs, that share most settings. None outlives its test. */
export class Services {
  /** Their working directory, which is empty when a test begins. */
  home = '';
  private readonly running: ServiceProcess[] = [];

  /** @param common settings of every process; those given to `start` override them */
  constructor(private readonly common: () => Readonly<Record<string, string>> = () => ({})) {
    beforeEach(async () => {
      this.home = await mkdtemp(join(tmpdir(), 'petstore-services-'));
    });
    afterEach(async () => {
      await this.kill();
      await rm(this.home, { recursive: true, force: true });
    });
  }

  /** @param program Node's arguments for another program than the built service */
  start(settings: Readonly<Record<string, string>> = {}, program?: readonly string[]): ServiceProcess {
    const service = new ServiceProcess({ ...this.common(), ...settings }, this.home, program && { program });
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
  private async kill(): Promise<void> {
    const services = this.running.splice(0);
    await Promise.all(services.map((service) => service.kill()));
    const { BOOTSTRAP_API_KEY: key = 'bootstrap-key-of-the-tests' } = this.common();
    for (const { stdout } of services) {
      expect(stdout).not.toMatch(/pets_[0-9A-Za-z]{12}/);
      expect(stdout).not.toContain(key);
    }
  }
}
