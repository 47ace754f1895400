import type { SecurityRequirementObject, SecuritySchemeObject } from '@nestjs/swagger';
import { StartupError } from '#runtime';
import type { Application } from '#settings';

/** Security schemes by their names. */
export type Schemes = Readonly<Record<string, SecuritySchemeObject>>;

/** The security schemes of the document, and which of them an operation takes. Of two with one name, that of the guard counts. */
export class Security {
  readonly schemes: Schemes;
  /** The requirements of each operation without `security`: the API key, or another way to say who calls. */
  readonly requirements: readonly SecurityRequirementObject[];
  private readonly ofGuards: Schemes;

  /** @param ofCallers the schemes of authenticators */
  constructor({ defaultScopes, securitySchemes = {} }: Application, ofCallers: Schemes) {
    const scopes = defaultScopes.map((scope) => `\`${scope}\``).join(' and ');
    const bearerAuth: SecuritySchemeObject = {
      type: 'http',
      scheme: 'bearer',
      description:
        'An API key, sent as `Authorization: Bearer <API key>` with every request (RFC 6750). A key carries scopes, such ' +
        `as ${scopes}; each operation names those it needs. Operators of the service issue keys.`,
    };
    const ofPlatform = { bearerAuth, ...ofCallers };
    this.schemes = { ...ofPlatform, ...securitySchemes };
    this.requirements = Object.keys(ofPlatform).map((name) => ({ [name]: [] }));
    this.ofGuards = securitySchemes;
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
        `${operation} names the security scheme '${unknown[0]}', which is not declared. Remove the decorator for API keys; else ` +
          'declare the scheme in securitySchemes: of an Authenticator, or of defineService for a guard of a module.',
      );
    }
    const ofGuards = entries
      .map((requirement) => Object.fromEntries(requirement.filter(([name]) => Object.hasOwn(this.ofGuards, name))))
      .filter((requirement) => Object.keys(requirement).length > 0);
    if (isPublic) return ofGuards;
    // Scopes of OAuth 2, by scheme.
    const scopes = Object.fromEntries(entries.flat().filter(([, each]) => each.length > 0));
    if (ofGuards.length === 0 && Object.keys(scopes).length === 0) return undefined;
    const ofCallers = this.requirements.map((requirement) =>
      Object.fromEntries(Object.keys(requirement).map((name) => [name, scopes[name] ?? []])),
    );
    if (ofGuards.length === 0) return ofCallers;
    return ofCallers.flatMap((caller) => ofGuards.map((guard) => ({ ...caller, ...guard })));
  }
}
