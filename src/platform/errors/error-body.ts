import type { ErrorDefinition } from './error-catalogue.js';

/** The schema `Error` of the specification: the body of every error answer. Members are sent in this order. */
export class ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly status: number;
  /** Only errors of modules have details. */
  declare readonly details?: unknown;

  constructor(definition: ErrorDefinition, message: string, details?: unknown) {
    this.code = definition.code;
    this.message = message;
    this.status = definition.status;
    if (details !== undefined) this.details = details;
  }
}
