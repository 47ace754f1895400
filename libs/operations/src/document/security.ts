import type { SecurityRequirementObject, SecuritySchemeObject } from '@nestjs/swagger';
import { StartupError } from '#runtime';
import type { Application } from '#settings';

/** Security schemes, each with its name. */
export type Schemes = readonly (readonly [name: string, scheme: SecuritySchemeObject])[];

/** The security schemes of the document, and which of them an operation takes. */
export class Security {
  readonly schemes: Readonly<Record<string, SecuritySchemeObject>>;
  /** The requirements of each operation without `security`: the API key, or another way to say who calls. */
  readonly requirements: readonly SecurityRequirementObject[];
  private readonly ofGuards: ReadonlySet<string>;

  /**
   * @param ofCallers the schemes of authenticators
   * @throws StartupError when two schemes have one name
   */
  constructor({ defaultScopes, securitySchemes = {} }: Application, ofCallers: Schemes) {
    const scopes = defaultScopes.map((scope) => `\`${scope}\``).join(' and ');
    const apiKey: SecuritySchemeObject = {
      type: 'http',
      scheme: 'bearer',
      description:
        'An API key, sent as `Authorization: Bearer <API key>` with every request (RFC 6750). A key carries scopes, such ' +
        `as ${scopes}; each operation names those it needs. Operators of the service issue keys.`,
    };
    const platform: Schemes = [['bearerAuth', apiKey], ...ofCallers];
    const all = [...platform, ...Object.entries(securitySchemes)];
    const twice = all.find(([name], index) => all.findIndex((other) => other[0] === name) < index);
    if (twice) throw new StartupError(`There are two security schemes '${twice[0]}'. Give one of them another name.`);
    this.schemes = Object.fromEntries(all);
    this.requirements = platform.map(([name]) => ({ [name]: [] }));
    this.ofGuards = new Set(Object.keys(securitySchemes));
  }

  /**
   * The requirements of an operation; undefined for those of the document. The API key, or another way to say who calls, is needed
   * beside a scheme of a guard that decorators name. At a public operation nothing but the guard's scheme is.
   *
   * @param operation such as `OrdersController.listOrders`
   * @param named the requirements of decorators
   * @throws StartupError when one names a scheme that is not declared
   */
  of(
    operation: string,
    isPublic: boolean,
    named: readonly SecurityRequirementObject[] = [],
  ): SecurityRequirementObject[] | undefined {
    const entries = named.map((requirement) => Object.entries(requirement));
    const unknown = entries.flat().find(([name]) => !Object.hasOwn(this.schemes, name));
    if (unknown !== undefined) {
      throw new StartupError(
        `${operation} names the security scheme '${unknown[0]}', which is not declared. Remove the decorator for API keys, which every ` +
          'operation takes; else declare the scheme in securitySchemes: of an Authenticator, or of defineService for a guard of a module.',
      );
    }
    const ofGuards = entries
      .map((requirement) => Object.fromEntries(requirement.filter(([name]) => this.ofGuards.has(name))))
      .filter((requirement) => Object.keys(requirement).length > 0);
    if (isPublic) return ofGuards;
    // Scopes of OAuth 2, by scheme.
    const scopes = Object.fromEntries(entries.flat().filter(([, each]) => each.length > 0));
    const ofCallers = this.requirements.map((requirement) =>
      Object.fromEntries(Object.keys(requirement).map((name) => [name, scopes[name] ?? []])),
    );
    if (ofGuards.length > 0) return ofCallers.flatMap((caller) => ofGuards.map((guard) => ({ ...caller, ...guard })));
    return Object.keys(scopes).length > 0 ? ofCallers : undefined;
  }
}
