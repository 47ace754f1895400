import { Global, Module } from '@nestjs/common';
import { Deprecations } from './deprecations.js';

/** For the interceptor of `@Deprecated` and `@Stability`, in every module. */
@Global()
@Module({ providers: [Deprecations], exports: [Deprecations] })
export class DeprecationModule {}
