import { type VersioningOptions, VersioningType } from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';
import type { Reach } from '#runtime';

export { ApplicationConfig };

/** What was set last by `app.setGlobalPrefix` and `app.enableVersioning`. */
export interface Addresses {
  /** Empty without a call. */
  readonly prefix: string;
  readonly versions: VersioningOptions | undefined;
}

export function addressesOf(application: ApplicationConfig): Addresses {
  return { prefix: application.getGlobalPrefix(), versions: application.getVersioning() };
}

export const ADDRESSES: Reach = {
  dependency: '@nestjs/core',
  touches: '`ApplicationConfig`',
  why: 'A global prefix, or another kind of versions, stops the start: it would move health checks and the API.',
  check() {
    const application = new ApplicationConfig();
    const versions: VersioningOptions = { type: VersioningType.URI };
    const { prefix } = addressesOf(application);
    if (prefix !== '') return `an application begins with the global prefix '${prefix}'`;
    application.setGlobalPrefix('trial');
    application.enableVersioning(versions);
    const set = addressesOf(application);
    return set.prefix === 'trial' && set.versions === versions ? undefined : 'prefix and versions are not found';
  },
};
