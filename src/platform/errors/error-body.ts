import type { ErrorDefinition } from './error-catalogue.js';

/** The Error of the specification: the body of every answer that is an error. Members in the order they are sent. */
export class ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly status: number;

  constructor(definition: ErrorDefinition, message: string) {
    this.code = definition.code;
    this.message = message;
    this.status = definition.status;
  }
}
