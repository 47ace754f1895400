import type { PipeTransform } from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';

export { ApplicationConfig };

/** The pipes of `app.useGlobalPipes` and of APP_PIPE, without those of a request. */
export function globalPipesOf(application: ApplicationConfig): readonly PipeTransform[] {
  return application.getGlobalPipes();
}
