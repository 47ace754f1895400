import { Injectable, type OnModuleInit } from '@nestjs/common';
import { StartupError } from '#runtime';
import { URI_VERSIONS } from '#settings';
import { addressesOf, ApplicationConfig } from './addresses.internals.js';

/** Keeps the addresses of the API, health checks and pages as the document has them, whoever tries to change them. */
@Injectable()
export class FixedAddresses implements OnModuleInit {
  constructor(private readonly application: ApplicationConfig) {}

  /** @throws StartupError after a call of `app.setGlobalPrefix`, or of `app.enableVersioning` with other versions */
  onModuleInit(): void {
    const { prefix, versions } = addressesOf(this.application);
    const calls = [prefix !== '' && 'setGlobalPrefix', versions !== URI_VERSIONS && 'enableVersioning'];
    const call = calls.find((name) => name !== false);
    if (call === undefined) return;
    throw new StartupError(
      `Nothing may call app.${call}: it would change the addresses of the API, health checks and pages. In your own ` +
        "modules use @Version('2') for /v2, and @Controller('…') or RouterModule for a prefix.",
    );
  }
}
