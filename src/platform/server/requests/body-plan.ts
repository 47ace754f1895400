/** What a handler takes of its body. Made once for each handler, before any body is read for it. */
export interface BodyPlan {
  /** Whether a parameter of the handler takes the body, so that a request without one is refused. */
  readonly isTaken: boolean;
  /**
   * The members of a JSON body that the handler takes, all of them scalars. Nothing else of the body is kept in memory, and
   * arrays and objects are read as empty arrays. Undefined when the handler takes the whole body.
   */
  readonly members: readonly string[] | undefined;
  /** The names of the handler's `@Body('name')` parameters; undefined without any. */
  readonly picked: readonly string[] | undefined;
}

/** As the data of a parameter decorator: it does not use `request.body`, so nothing is read for its sake. */
export const LEAVES_BODY = Symbol('leaves the body');
