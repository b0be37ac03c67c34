import pino from 'pino';
import type { DestinationStream } from 'pino';
import type { Logger } from '../kube/log.js';
import type { LogLevel } from './config.js';

/** One JSON object a line. An error belongs under the key `err`: its stack and causes are written out. */
export function createLogger(level: LogLevel, process: string, destination?: DestinationStream): Logger {
  const options: pino.LoggerOptions = {
    level,
    base: { process },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}
