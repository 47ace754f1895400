import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { RouteParamtypes } from '@nestjs/common/internal';
import type { Request } from 'express';
import { type HandlerParameter, parametersOf } from './handler-parameters.js';
import { inputClassOf, isInputClass } from './input-class.js';

/** What a handler takes of its body. */
interface DeclaredBody {
  readonly members: readonly string[] | undefined;
  readonly picked: readonly string[] | undefined;
}

/**
 * Sets what the handler takes of its body, before the body is read: the reader makes no value that nobody asked for. It
 * refuses nothing.
 */
@Injectable()
export class DeclaredBodyGuard implements CanActivate {
  /** Reflection is slow and its result fixed, so each handler is looked at once. */
  private readonly known = new WeakMap<object, DeclaredBody>();

  canActivate(execution: ExecutionContext): true {
    // Messages of gateways and microservices, and resolvers of GraphQL, have no body of their own.
    if (execution.getType() !== 'http') return true;
    const handler = execution.getHandler() as (...parameters: never[]) => unknown;
    let body = this.known.get(handler);
    if (body === undefined) {
      body = declaredBody(parametersOf(execution.getClass(), handler));
      this.known.set(handler, body);
    }
    const { context } = execution.getArgByIndex<Request>(0);
    context.bodyMembers = body.members;
    context.pickedMembers = body.picked;
    return true;
  }
}

function declaredBody(parameters: readonly HandlerParameter[]): DeclaredBody {
  const bodies = parameters.filter(({ source }) => source === RouteParamtypes.BODY);
  const picked = bodies.flatMap(({ data }) => data ?? []);
  const [whole] = bodies;
  const type = bodies.length === 1 && picked.length === 0 ? whole?.metatype : undefined;
  const properties = isInputClass(type) ? inputClassOf(type).properties : undefined;
  return { members: properties?.map(({ name }) => name), picked: picked.length > 0 ? picked : undefined };
}
