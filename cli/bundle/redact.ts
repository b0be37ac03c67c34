import { isRecord } from '../../api/json.js';

/** What stands where a secret was. */
export const REDACTED = 'REDACTED';

/** Objects of the API are not nested as deep. */
const MAX_DEPTH = 64;
const SECRET_WORD =
  'pass(?:word|wd|phrase)|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credentials?|authorization';
/** Keys with a secret as their value. `secretName` and `token-file` are none. */
const SECRET_KEY = new RegExp(`(?:${SECRET_WORD})$`, 'i');
/** Cloud-init in volumes of KubeVirt. It contains passwords and keys. */
const GUEST_DATA = /^(?:user|network)Data(?:Base64)?$/;
const DROPPED_ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration';
/** Lists of command lines. */
const COMMAND_LINES: ReadonlySet<string> = new Set(['args', 'command']);

const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|$)/g;
/** The end of a private key whose beginning is missing, as in the last lines of a log. */
const END_OF_PRIVATE_KEY = /^[^]*?-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----/;
/** A PEM file in base64: the encoding of `-----BEGIN`, at its first byte. */
const ENCODED_PEM = /LS0tLS1CRUdJTi[A-Za-z0-9+/=]+/g;
const SCHEME = /\b(Bearer|Basic)\s+[\w.~+/-]{6,}=*/gi;
/** RFC 7519. */
const JSON_WEB_TOKEN = /(?<![\w-])eyJ[\w-]{5,}\.[\w-]+\.[\w-]*/g;
const URL_CREDENTIALS = /(\b[a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/@"']+@/gi;
/** The quotes of a value are escaped in JSON within JSON. Such a value ends at a quote with as many backslashes. */
const ESCAPED_VALUE = String.raw`(\\{1,3}")(?:[^]{0,4096}?(?<!\\)\2|[^]{0,4096})`;
const QUOTED_VALUE = String.raw`"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?`;
/** `key=value`, `key: value` and `"key":"value"`. */
const ASSIGNMENT = new RegExp(
  String.raw`((?:${SECRET_WORD})\\{0,3}["']?\s{0,8}[=:]\s{0,8})(?:${ESCAPED_VALUE}|${QUOTED_VALUE}|[^\s,;&"'}\]]+)`,
  'gi',
);

/** Removes credentials from text: private keys, tokens, passwords in URLs and assignments. */
export function redactText(text: string): string {
  return text
    .replace(PRIVATE_KEY, REDACTED)
    .replace(END_OF_PRIVATE_KEY, REDACTED)
    .replace(ENCODED_PEM, (pem) =>
      Buffer.from(pem, 'base64').toString('latin1').includes('PRIVATE KEY') ? REDACTED : pem,
    )
    .replace(SCHEME, `$1 ${REDACTED}`)
    .replace(JSON_WEB_TOKEN, REDACTED)
    .replace(URL_CREDENTIALS, `$1${REDACTED}@`)
    .replace(ASSIGNMENT, (found, key: string) => {
      const quote = /^\\*["']/.exec(found.slice(key.length))?.[0] ?? '';
      return `${key}${quote}${REDACTED}${quote}`;
    });
}

/**
 * Copies an object without credentials: values of environment variables, credentials in command lines, guest data of VMs, and what
 * {@link redactText} finds in texts. Copies that kubectl and the API server keep of the object, which are of no use, are left out.
 */
export function redactObject(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (depth > MAX_DEPTH) return REDACTED;
  if (Array.isArray(value)) return value.map((item) => redactObject(item, depth + 1));
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(([key]) => key !== 'managedFields' && key !== DROPPED_ANNOTATION);
  return Object.fromEntries(kept.map(([key, field]) => [key, redactField(key, field, depth)]));
}

function redactField(key: string, field: unknown, depth: number): unknown {
  if (typeof field === 'string') return SECRET_KEY.test(key) || GUEST_DATA.test(key) ? REDACTED : redactText(field);
  if (!Array.isArray(field)) return redactObject(field, depth + 1);
  if (COMMAND_LINES.has(key)) return redactArguments(field);
  const items = key === 'env' ? field.map(withoutValue) : field;
  return redactObject(items, depth + 1);
}

/** An environment variable. Its reference to a Secret or a field stays. */
function withoutValue(variable: unknown): unknown {
  return isRecord(variable) && 'value' in variable ? { ...variable, value: REDACTED } : variable;
}

/** `--token value` are two arguments. */
function redactArguments(args: readonly unknown[]): unknown[] {
  return args.map((argument, index) => {
    const before = args[index - 1];
    const isValue = typeof before === 'string' && /^--?[^=]*$/.test(before) && SECRET_KEY.test(before);
    return isValue ? REDACTED : redactObject(argument);
  });
}
