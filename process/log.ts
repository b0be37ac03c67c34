import pino from 'pino';
import type { DestinationStream } from 'pino';
import { MAX_MESSAGE_LENGTH } from '../api/limits.js';
import { truncate } from '../api/json.js';
import type { Logger } from '../kube/log.js';
import type { LogLevel } from './config/config.js';

/** Creates a logger that writes one JSON object per line, with strings of bounded length. Errors under the key `err` get stack and causes. */
export function createLogger(level: LogLevel, process: string, destination?: DestinationStream): Logger {
  const options: pino.LoggerOptions = {
    level,
    base: { process },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    hooks: { streamWrite: shortenTexts },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}

/** Only a line that is longer than a text may be can contain a longer one, so usual lines cost nothing. */
function shortenTexts(line: string): string {
  if (line.length <= MAX_MESSAGE_LENGTH) return line;
  const shorten = (_key: string, value: unknown) =>
    typeof value === 'string' ? truncate(value, MAX_MESSAGE_LENGTH) : value;
  return `${JSON.stringify(JSON.parse(line), shorten)}\n`;
}
