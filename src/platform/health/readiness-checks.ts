import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { once } from 'node:events';
import { StartupError } from '../errors/startup-error.js';

/** Longest time in ms of a check. */
export const READINESS_TIMEOUT_MS = 1_000;

/** Time in ms for which results are shared, because the endpoint is public. */
const INTERVAL_MS = 1_000;

const NAME = /^[a-z][a-z0-9-]{0,39}$/;

/** The metadata key of a check's name, on its method. */
const METADATA = 'petstore:readiness-check';

/**
 * Makes a method of a provider a readiness check: `/health/ready` answers 503 when the method throws or does not settle
 * within READINESS_TIMEOUT_MS. Its parameter is an `AbortSignal` that aborts at that time. While `/health/ready` is
 * requested, the method is called about once a second, and never while an earlier call runs.
 *
 * Check only what every request needs and what may fail on this instance alone. If all instances fail a check at once, none
 * of them gets requests.
 *
 * @param name the name in the answer, which is public, and in the log: up to 40 of a-z, 0-9 and `-`
 */
export function ReadinessCheck(name: string): ReadinessDecorator {
  if (!NAME.test(name)) throw new Error(`'${name}' is no name of a readiness check: ${NAME.source}`);
  return (_prototype, _key, { value }) => {
    Reflect.defineMetadata(METADATA, name, value as object);
  };
}

type ReadinessDecorator = <Method extends (signal: AbortSignal) => unknown>(
  prototype: object,
  key: string | symbol,
  method: TypedPropertyDescriptor<Method>,
) => void;

/** The result of each check, by its name. */
export type CheckResults = Readonly<Record<string, 'ok' | 'failed'>>;

interface Check {
  readonly name: string;
  readonly run: (signal: AbortSignal) => unknown;
  isRunning: boolean;
  hasFailed: boolean;
}

/** The methods of modules with `@ReadinessCheck`. */
@Injectable()
export class ReadinessChecks implements OnModuleInit {
  private readonly log = new Logger(ReadinessChecks.name);
  private readonly checks: Check[] = [];
  private results: Promise<CheckResults> = Promise.resolve({});
  private expiresAt = -Infinity;

  constructor(private readonly discovery: DiscoveryService) {}

  /** @throws StartupError when two checks have the same name, or a provider is request-scoped */
  onModuleInit(): void {
    const scanner = new MetadataScanner();
    for (const wrapper of this.discovery.getProviders()) {
      const instance = wrapper.instance as Record<string, Check['run']> | null | undefined;
      if (typeof instance !== 'object' || instance === null) continue;
      const prototype = Object.getPrototypeOf(instance) as Record<string, Check['run']>;
      for (const method of scanner.getAllMethodNames(prototype)) {
        const name = Reflect.getMetadata(METADATA, prototype[method] as object) as string | undefined;
        if (name === undefined) continue;
        if (!wrapper.isDependencyTreeStatic()) {
          throw new StartupError(
            `The readiness check '${name}' stands at ${wrapper.name}, which is made anew for each request. ` +
              'Put it into a provider that is a singleton.',
          );
        }
        if (this.checks.some((check) => check.name === name)) {
          throw new StartupError(`Two readiness checks have the name '${name}'. Give each @ReadinessCheck its own.`);
        }
        this.checks.push({ name, run: (signal) => instance[method]?.(signal), isRunning: false, hasFailed: false });
      }
    }
  }

  /** Runs all checks within READINESS_TIMEOUT_MS, or returns the results of the last second. */
  run(): Promise<CheckResults> {
    if (performance.now() >= this.expiresAt) {
      this.expiresAt = performance.now() + INTERVAL_MS;
      this.results = this.runAll();
    }
    return this.results;
  }

  private async runAll(): Promise<CheckResults> {
    const results = await Promise.all(
      this.checks.map(async (check) => [check.name, (await this.succeeds(check)) ? 'ok' : 'failed'] as const),
    );
    return Object.fromEntries(results);
  }

  private async succeeds(check: Check): Promise<boolean> {
    // Calls that ignore their signal must not pile up.
    if (check.isRunning) return false;
    try {
      await this.runInTime(check);
      if (check.hasFailed) this.log.log(`The readiness check '${check.name}' succeeds again.`);
      check.hasFailed = false;
    } catch (error) {
      // Logged once for each outage: several load balancers may request the endpoint every second.
      if (!check.hasFailed) this.log.error(`The readiness check '${check.name}' fails.`, error);
      check.hasFailed = true;
    }
    return !check.hasFailed;
  }

  /** @throws the error of the check, or a TimeoutError when it does not settle in time */
  private async runInTime(check: Check): Promise<void> {
    const signal = AbortSignal.timeout(READINESS_TIMEOUT_MS);
    const timeout = once(signal, 'abort').then(() => Promise.reject(signal.reason as Error));
    check.isRunning = true;
    const answer = Promise.resolve()
      .then(() => check.run(signal))
      .finally(() => (check.isRunning = false));
    await Promise.race([answer, timeout]);
  }
}
