import { readFileSync } from 'node:fs';
import { administer, databaseUrl } from './postgresql-database.js';

/*
 * The two roles of "Roles and rights" in docs/operating.md, made by the SQL of that page: one owns the schema, the other
 * is the service's, owns nothing, and has the rights that the page grants. The roles of a server are named after
 * the database that they were made with.
 */

/** The URIs of a database, one for each role. */
export interface RoleUrls {
  readonly ownerUrl: string;
  readonly serviceUrl: string;
}

/** Creates an empty database of this name, with the roles of the page. */
export async function createDatabaseWithRoles(serverUrl: string, name: string): Promise<RoleUrls> {
  const [creation = ''] = documentedSql(name);
  // CREATE DATABASE must be a separate statement.
  for (const statement of creation.trim().split('\n')) await administer(serverUrl, statement);
  await grantRights(serverUrl, name, name);
  return roleUrls(serverUrl, name, name);
}

/** Gives the service's role its rights in the owner's database. */
export async function grantRights(
  serverUrl: string,
  roles: string,
  database: string,
  schema = 'public',
): Promise<void> {
  const [, grants = ''] = documentedSql(roles);
  await administer(roleUrls(serverUrl, roles, database).ownerUrl, grants.replaceAll('public', schema));
}

/** @param roles the name with which the roles were made */
export function roleUrls(serverUrl: string, roles: string, database: string): RoleUrls {
  const urlOf = (role: string): string => {
    const url = new URL(databaseUrl(serverUrl, database));
    Object.assign(url, { username: `${roles}_${role}`, password: `secret-of-the-${role}` });
    return url.href;
  };
  return { ownerUrl: urlOf('owner'), serviceUrl: urlOf('service') };
}

/** The SQL of the page that creates roles and database, and that grants rights, with `petstore` replaced by another name. */
function documentedSql(name: string): string[] {
  const page = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8');
  const section = page.slice(page.indexOf('### Roles and rights'));
  return [...section.matchAll(/```sql\n([^]*?)```/g)].map(([, sql = '']) =>
    sql.replace(/petstore(_owner|_service)?\b/g, `${name}$1`),
  );
}
