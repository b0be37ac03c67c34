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
    hooks: {
      logMethod([fields, message, ...rest], write) {
        write.apply(this, [fields, shortenText(message), ...rest] as Parameters<typeof write>);
      },
    },
    serializers: { err: (error: Error) => shortenTexts(pino.stdSerializers.err(error)) },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}

/** @param error any thrown value */
function shortenTexts(error: unknown): unknown {
  if (typeof error !== 'object' || error === null) return shortenText(error);
  return Object.fromEntries(Object.entries(error).map(([key, value]) => [key, shortenText(value)]));
}

function shortenText(value: unknown): unknown {
  return typeof value === 'string' ? truncate(value, MAX_MESSAGE_LENGTH) : value;
}
